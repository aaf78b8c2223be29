#!/bin/sh
# Installs Chromium, in which the tests look at pages. Where that can't be, it says so, and those tests say that they are
# skipped.
set -u

for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
echo "installing: chromium"
{ $sudo apt-get update -qq \
  && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
  || echo "################ chromium could not be installed: PAGES ARE NOT LOOKED AT ################" >&2
