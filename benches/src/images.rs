//! Pictures that are decoded and resized into batches: the input of a training job.

use std::fs;
use std::path::{Path, PathBuf};

use brigade_testkit::Random;
use image::{ImageReader, Rgb, RgbImage, imageops};
use tempfile::TempDir;

use crate::load::Load;
use crate::report::Outcome;

/// A temporary folder of pictures, deleted on drop.
#[derive(Debug)]
pub(crate) struct Gallery {
    _folder: TempDir,
    pub(crate) list: PathBuf,
}

/// Size of a picture before it is resized.
const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;

impl Gallery {
    /// Creates PNG and JPEG files in turn; the same seed gives the same pictures.
    pub(crate) fn create(load: &Load) -> Outcome<Self> {
        let folder = TempDir::with_prefix("brigade-bench-")?;
        let mut random = Random::new(load.seed);
        let mut list = String::new();
        for number in 0..load.picture_count {
            let kind = if number % 2 == 0 { "png" } else { "jpg" };
            let path = folder.path().join(format!("{number:05}.{kind}"));
            picture(&mut random).save(&path)?;
            list.extend([&*path.to_string_lossy(), "\n"]);
        }
        let path = folder.path().join("list");
        fs::write(&path, list)?;
        Ok(Self { _folder: folder, list: path })
    }
}

/// Returns slopes of color with some noise, which compress about as well as a photo.
fn picture(random: &mut Random) -> RgbImage {
    let phase = random.number().to_le_bytes();
    let mut noise = random.number();
    RgbImage::from_fn(WIDTH, HEIGHT, |x, y| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let grain = noise.to_le_bytes()[7] % 8;
        let [x, y] = [x, y].map(|at| at.to_le_bytes()[0]);
        let red = (x / 2).wrapping_add(phase[0]).wrapping_add(grain);
        let green = (y / 2).wrapping_add(phase[1]).wrapping_add(grain);
        Rgb([red, green, (x ^ y).wrapping_add(phase[2])])
    })
}

/// Reads the list of pictures, and returns it in batches.
pub(crate) fn batches(load: &Load) -> Outcome<Vec<Vec<String>>> {
    let list = fs::read_to_string(&load.pictures)?;
    let paths: Vec<String> = list.lines().map(str::to_owned).collect();
    Ok(paths.chunks(load.picture_batch).map(<[String]>::to_vec).collect())
}

/// Returns the number of bytes of a batch.
pub(crate) fn size(pictures: usize, side: u32) -> Outcome<usize> {
    let side = usize::try_from(side)?;
    Ok(pictures * side * side * 3)
}

/// Decodes and resizes pictures into `batch`, one after the other.
pub(crate) fn load_all(paths: &[String], side: u32, batch: &mut [u8]) -> Result<(), String> {
    let one = batch.len() / paths.len().max(1);
    for (path, row) in paths.iter().zip(batch.chunks_exact_mut(one.max(1))) {
        load(Path::new(path), side, row).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn load(path: &Path, side: u32, row: &mut [u8]) -> image::ImageResult<()> {
    let picture = ImageReader::open(path)?.decode()?.into_rgb8();
    row.copy_from_slice(&imageops::thumbnail(&picture, side, side));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Gallery, batches, load_all, size};
    use crate::load::Load;

    #[test]
    fn pictures_become_rows_of_a_batch() {
        let mut load = Load { picture_count: 3, picture_batch: 2, ..Load::new(true) };
        let gallery = Gallery::create(&load).unwrap();
        load.pictures.clone_from(&gallery.list);
        let batches = batches(&load).unwrap();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let mut batch = vec![0; size(2, 8).unwrap()];
        load_all(&batches[0], 8, &mut batch).unwrap();
        assert!(batch.chunks(8 * 8 * 3).all(|row| row.iter().any(|&byte| byte != 0)));
    }
}
