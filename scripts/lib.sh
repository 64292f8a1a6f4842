# Sourced by the other scripts: the repository's root as working folder, and where the tools are.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
venv=$root/.cache/venv
nvcc=${NVCC:-$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)}

say() { printf '\033[1m%s\033[0m\n' "$*"; }
