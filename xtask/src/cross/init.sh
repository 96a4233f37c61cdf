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
run() {
    echo "@@ begin $1"
    cd "$2"
    timeout 900 "$3" --test-threads "$4" 2>&1
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
