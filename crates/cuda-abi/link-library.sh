#!/bin/sh
# Links a static library of exported C functions into a shared library.
#
#   link-library.sh ARCHIVE VERSION_SCRIPT SONAME OUTPUT
#
# Exactly the version script's names are exported, each must be there, and calls inside the library stay inside it.
set -eu
archive=$1 script=$2 soname=$3 output=$4

# The wanted names pull their objects out of the archive; everything unreachable from them is dropped.
names=$(sed -n 's/^    \([A-Za-z_0-9]*\);$/\1/p' "$script")
response=$(mktemp)
trap 'rm -f "$response"' EXIT
for name in $names; do
    printf '%s\n' "-Wl,--require-defined=$name"
done >"$response"

${CC:-cc} -shared -o "$output" "@$response" "$archive" \
    -Wl,--version-script="$script" -Wl,-soname,"$soname" \
    -Wl,-Bsymbolic -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete \
    -lgcc_s -lpthread -ldl -lm -lc
