#!/usr/bin/env bash
# Puts the images of an archive, as docker save writes it, onto the test cluster's node.
#
# import.sh ARCHIVE      lib.sh has the settings
set -euo pipefail
. "$(dirname "$0")/lib.sh"
bin=$("$here/build.sh" --cached)
import "$1"
