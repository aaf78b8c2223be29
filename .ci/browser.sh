#!/bin/sh
# Installs Chromium, in which the tests look at pages; elsewhere they are skipped where there is none.
set -eu

for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
echo "installing: chromium"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
