# What the scripts share. Each is called with: the command, the tool, the source folder, a folder to work in, the example program,
# and the standard's test cases.
set -u
samebit=$1 tool=$2 source=$3 work=$4 example=$5 standard=$6
digits=$source/examples/digits
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# runs STATUS COMMAND…: runs it into the files out and err, and checks its exit status.
runs() {
    wanted=$1
    shift
    "$@" >out 2>err
    found=$?
    [ $found -eq "$wanted" ] || {
        fail "status $found instead of $wanted: $*"
        cat out err
    }
}

# says FILE TEXT: the file contains the text.
says() {
    grep -qF -e "$2" "$1" || {
        fail "$1 does not say: $2"
        cat "$1"
    }
}

# silent FILE: nothing in it.
silent() {
    [ ! -s "$1" ] || {
        fail "$1 is not empty"
        cat "$1"
    }
}

# refused MESSAGE COMMAND…: exit status 2, nothing on stdout, and the message on one line of stderr.
refused() {
    message=$1
    shift
    runs 2 "$@"
    silent out
    says err "$message"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $*"
}

# json PATH=VALUE…: the file out is JSON and holds the values.
json() {
    "$tool" json out "$@" || {
        fail "JSON: $*"
        cat out
    }
}

# A page or picture is well formed and fetches nothing.
self_contained() {
    "$tool" markup "$1" || fail "$1 is not well formed"
    ! grep -Eq '(src|href)=|url\(|@import' "$1" || fail "$1 wants something from outside"
}

finish() {
    left=$(find . -name '*.partial')
    [ -z "$left" ] || fail "left behind: $left"
    [ $failures -eq 0 ] && echo "all as it should be"
    exit $((failures != 0))
}
