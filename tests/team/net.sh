# net.sh: three hosts on this machine, for tests as root: network namespaces
# with a host name each, and a switch between them.
#
# SPDX-License-Identifier: Apache-2.0
#
#   net_missing            says what is needed and not here; false: all is here
#   net_open FOLDER        the hosts; FOLDER gets `agent`, which starts a
#                          command on a host, as ssh does
#   on NUMBER COMMAND...   on host 1, 2 or 3, whose address is $net.NUMBER
#   link NUMBER up|down    its cable
#   net_rate MBIT          a limit for all cables; net_full_rate: none
#   net_launch MPI AGENT   the words that start an mpirun on all three
#   net_processes          the numbers of all processes on them
#   net_close              nothing stays
# All names and the switch are those of this process, and the machine's own
# network is not touched.
# shellcheck shell=sh
net=10.231.77
net_name=tether$$

net_missing() {
    if [ "$(id -u)" -ne 0 ]; then echo "root"
    elif ! command -v ip > /dev/null 2>&1; then echo "ip (iproute2)"
    elif ! command -v unshare > /dev/null 2>&1; then echo "unshare"
    elif ! ip netns add "$net_name-try" 2> /dev/null; then
        echo "a machine that lets us make network namespaces"
    elif ! ip netns exec "$net_name-try" unshare -u sh -c \
        'echo host0 > /proc/sys/kernel/hostname' 2> /dev/null ||
        ! ip -n "$net_name-try" link add type bridge 2> /dev/null ||
        ! ip -n "$net_name-try" link add type veth 2> /dev/null; then
        ip netns del "$net_name-try"
        echo "names, bridges and veth links in network namespaces"
    else
        ip netns del "$net_name-try"
        return 1
    fi
}

on() {   # host, command
    host=$1
    shift
    # shellcheck disable=SC2016
    ip netns exec "$net_name-$host" unshare -u sh -c '
        echo "$0" > /proc/sys/kernel/hostname
        exec "$@"' "host$host" "$@"
}

net_open() {   # folder
    ip netns add "$net_name-0" &&
        ip -n "$net_name-0" link add switch type bridge &&
        ip -n "$net_name-0" link set switch up || return 1
    for host in 1 2 3; do
        ip netns add "$net_name-$host" &&
            ip -n "$net_name-0" link add "port$host" type veth peer \
                name cable netns "$net_name-$host" &&
            ip -n "$net_name-0" link set "port$host" master switch up &&
            ip -n "$net_name-$host" address add $net.$host/24 dev cable &&
            ip -n "$net_name-$host" link set cable up &&
            ip -n "$net_name-$host" link set lo up || return 1
    done
    cat > "$1/agent" << AGENT
#!/bin/sh
host=\${1#$net.}
shift
exec ip netns exec $net_name-\$host unshare -u sh -c '
    echo "\$0" > /proc/sys/kernel/hostname
    eval "exec \$1"' host\$host "\$*"
AGENT
    chmod +x "$1/agent"
}

link() {   # host, up or down: up when it carries
    ip -n "$net_name-0" link set "port$1" "$2"
    [ "$2" = up ] || return 0
    until ip -n "$net_name-$1" link show cable | grep -q 'state UP'; do
        sleep 0.1
    done
    sleep 1
}

# Megabits per second to every host; tc is a part of iproute2.
net_rate() {
    for host in 1 2 3; do
        tc -n "$net_name-0" qdisc replace dev "port$host" root tbf \
            rate "$1mbit" burst 64kb latency 400ms || return 1
    done
}

net_full_rate() {
    for host in 1 2 3; do
        tc -n "$net_name-0" qdisc del dev "port$host" root
    done
}

# Rank r runs on host 1 + r % 3. The memory of the machine is not that of hosts,
# so MPICH is told to use the network.
net_launch() {   # MPI, agent
    hosts=$net.1,$net.2,$net.3
    case $1 in
    openmpi)
        keep='--mca oob_tcp_keepalive'
        echo "mpirun.openmpi --mca plm_rsh_agent $2" \
            "${keep}_time 5 ${keep}_intvl 5 ${keep}_probes 2" \
            "--mca odls_base_sigkill_timeout 5" \
            "--host $net.1:9,$net.2:9,$net.3:9 --map-by node"
        ;;
    mpich)
        echo "env UCX_TLS=tcp,self mpirun.mpich -launcher rsh" \
            "-launcher-exec $2 -hosts $hosts -ppn 1"
        ;;
    esac
}

net_processes() {
    for host in 1 2 3; do ip netns pids "$net_name-$host"; done
}

net_close() {
    for process in $(net_processes 2> /dev/null); do
        kill -9 "$process" 2> /dev/null
    done
    for host in 0 1 2 3; do
        [ ! -e "/run/netns/$net_name-$host" ] ||
            ip netns del "$net_name-$host"
    done
}
