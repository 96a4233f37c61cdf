#!/bin/busybox sh
# The first process of a virtual machine: runs the tests in /order.
export PATH=/usr/bin:/usr/sbin HOME=/root LANG=C
seconds() { cut -d. -f1 /proc/uptime; }
# `init one TEST` runs a test of $program, and prints its output only if it fails.
if [ "$1" = one ]; then
    left=$((last - $(seconds)))
    [ $left -lt 300 ] || left=300
    output=/run/output.$$
    if [ $left -le 0 ]; then
        echo "not run, because the time for its program is over" >$output
        result=FAILED
    elif timeout -k 5 $left "$program" --exact "$2" >$output 2>&1; then
        result=ok
    else
        result=FAILED
    fi
    (
        flock 9
        [ $result = ok ] || grep -v "^test " $output | tail -n 30
        echo "test $2 ... $result"
    ) 9>/run/lock.of.output
    rm -f $output
    [ $result = ok ]
    exit
fi
# The root that a kernel unpacks cannot be exchanged, as sandboxes do, and process 1 is in no process
# group. So the rest runs in a root above it, and in a group of its own.
if [ "$1" != above ]; then
    mkdir -p /above /run /tmp /dev
    mount --bind / /above
    cd /above
    mount --move . /
    exec chroot . setsid /init above
fi
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
# The functions below get the seconds that they may take, a name, a folder, a program, and its
# arguments. What is not over by then is killed, and has failed.
begin() {
    echo "@@ begin $1"
    began=$(seconds)
}
end() { echo "@@ end $1 $2 $(($(seconds) - began))"; }
# Each test has a process of its own, as some end theirs, or look at all that is in it.
each() {
    limit=$1 name=$2 program=$4
    cd "$3"
    shift 4
    begin "$name"
    last=$((began + limit))
    export program last
    "$program" --list "$@" 2>/dev/null | sed -n 's/: test$//p' | xargs -r -n 1 -P 2 /init one
    end "$name" $?
}
together() {
    limit=$1 name=$2 program=$4
    cd "$3"
    shift 4
    begin "$name"
    timeout -k 5 $limit "$program" --test-threads 2 "$@" 2>&1
    end "$name" $?
}
# A program that is one test.
whole() {
    limit=$1 name=$2 program=$4
    cd "$3"
    shift 4
    begin "$name"
    timeout -k 5 $limit "$program" "$@" 2>&1 && echo "test $* ... ok"
    end "$name" $?
}
. /order
echo "@@ over"
sync
busybox poweroff -f
