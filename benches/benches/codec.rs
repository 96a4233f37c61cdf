//! Encoding and decoding of arguments and values, without transport.

#![forbid(unsafe_code)]

use std::hint::black_box;

use brigade_wire::codec::{decode, encode};
use criterion::{BenchmarkId, Criterion, Throughput};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Larger than any encoded value here.
const LIMIT: usize = 1 << 30;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    value(&mut criterion, "nothing", ());
    value(&mut criterion, "number", u64::MAX);
    value(&mut criterion, "structure", (7_u32, "a path/of/some/length".to_owned(), vec![1.5; 8]));
    for size in [1 << 10, 64 << 10, 1 << 20] {
        bytes(&mut criterion, size);
    }
    criterion.final_summary();
}

fn value<T: Serialize + DeserializeOwned + 'static>(
    criterion: &mut Criterion,
    name: &str,
    value: T,
) {
    let mut group = criterion.benchmark_group("codec");
    let mut encoded = Vec::new();
    group.bench_function(BenchmarkId::new("encode", name), |bencher| {
        bencher.iter(|| {
            encoded.clear();
            encode(black_box(&value), &mut encoded, LIMIT)
        });
    });
    group.bench_function(BenchmarkId::new("decode", name), |bencher| {
        bencher.iter(|| decode::<T>(black_box(&encoded)));
    });
}

fn bytes(criterion: &mut Criterion, size: usize) {
    let value = vec![1_u8; size];
    let mut encoded = Vec::new();
    let mut group = criterion.benchmark_group("codec of bytes");
    group.throughput(Throughput::Bytes(size as u64));
    group.bench_function(BenchmarkId::new("encode", size), |bencher| {
        bencher.iter(|| {
            encoded.clear();
            encode(black_box(&value), &mut encoded, LIMIT)
        });
    });
    group.bench_function(BenchmarkId::new("decode", size), |bencher| {
        bencher.iter(|| decode::<Vec<u8>>(black_box(&encoded)));
    });
}
