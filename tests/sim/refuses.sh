#!/bin/sh
# refuses.sh SIM
#
# A seed, an option or a world that there is not is a sentence and status 2.
set -u

sim=$1 bad=0
refuses() {
    said=$("$sim" "$@" 2>&1 >/dev/null)
    status=$?
    case $status,$said in
    2,world:*) ;;
    *)
        echo "sim $*: status $status, $said"
        bad=1
        ;;
    esac
}
refuses --seed
refuses --seed ''
refuses --seed x
refuses --seed 1x
refuses --seed -1
refuses --seed ' 1'
refuses --seed 18446744073709551616
refuses --from 1.5
refuses --seeds 0
refuses --seeds -- 1
refuses --set
refuses --set clients
refuses --set no_such_key=1
refuses --set pool_size=x
refuses --set owners=33
refuses --set singles=4
refuses --set multis=3
refuses --set sentinel=1,cluster=0,replicas=3
refuses --set login=4
refuses --world 1
refuses 1
exit $bad
