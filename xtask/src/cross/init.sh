#!/bin/busybox sh
# The first process of a virtual machine: runs the tests in /order.
export PATH=/usr/bin:/usr/sbin HOME=/root LANG=C
/bin/busybox --install -s /usr/local/bin 2>/dev/null || true
mkdir -p /proc /sys /dev /tmp /run /root /etc
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t cgroup2 groups /sys/fs/cgroup
busybox ip link set lo up
test -e /usr/bin/sh || ln -s dash /usr/bin/sh
test -e /usr/bin/awk || ln -s mawk /usr/bin/awk
echo root:x:0:0::/root:/bin/sh > /etc/passwd
echo root:x:0: > /etc/group
echo "@@ machine: $(uname -rm), pages of $(getconf PAGESIZE) bytes, $(nproc) processors"
# The cases of properties take a hundred times as long.
export PROPTEST_CASES=16 TMPDIR=/tmp
# Each test has a process of its own, as some end theirs, or look at all that is in it.
each() {
    echo "@@ begin $1"
    cd "$2"
    code=0
    for test in $("$3" --list 2>/dev/null | sed -n 's/: test$//p'); do
        if timeout 180 "$3" --exact "$test" >/tmp/output 2>&1; then
            echo "test $test ... ok"
        else
            code=1
            grep -v "^test " /tmp/output | tail -n 30
            echo "test $test ... FAILED"
        fi
    done
    echo "@@ end $1 $code"
}
run() {
    echo "@@ begin $1"
    cd "$2"
    timeout 900 "$3" --test-threads 2 2>&1
    echo "@@ end $1 $?"
}
stress() {
    echo "@@ begin stress"
    timeout 300 "$1" --seed 1 --seconds 30 2>&1 && echo "test stress ... ok"
    echo "@@ end stress $?"
}
. /order
echo "@@ over"
sync
busybox poweroff -f
