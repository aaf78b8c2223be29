#!/bin/sh
# Starts one vLLM server a GPU of SERVER_GPUS, waits for them, trains with one process a GPU of TRAINER_GPUS, and ends
# what it started. Arguments go to `weightgym train`, such as --resume or --steps 20.
#   sh examples/multi_gpu/launch.sh [--smoke] [ARGUMENTS]
set -eu

here=$(dirname "$0")
python=${PYTHON:-python}                  # of the trainer, with weightgym[train]
server_python=${SERVER_PYTHON:-$python}   # of the servers, with vllm and weightgym
model=${MODEL:-Qwen/Qwen2.5-1.5B-Instruct}
trainer_gpus=${TRAINER_GPUS:-0,1}
server_gpus=${SERVER_GPUS:-2,3}
first_port=${FIRST_PORT:-8100}
start_timeout=${START_TIMEOUT:-900}       # seconds

train() {  # processes, then arguments of weightgym train
  processes=$1
  shift
  "$python" -m torch.distributed.run --standalone --nproc-per-node "$processes" \
    --no-python "$(dirname "$(command -v "$python")")/weightgym" train "$@"
}

if [ "${1:-}" = --smoke ]; then
  shift
  CUDA_VISIBLE_DEVICES="" OMP_NUM_THREADS=1 train 2 "$here/smoke.toml" "$@"
  exit
fi

servers=""
trap 'for one in $servers; do kill "$one" 2>/dev/null || true; done; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Development mode opens the routes for weights, and others that run code: on the loopback address only.
export VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=1
logs=${LOGS:-runs/multi_gpu_servers}
mkdir -p "$logs"
port=$first_port
urls=""
for gpu in $(echo "$server_gpus" | tr , ' '); do
  CUDA_VISIBLE_DEVICES=$gpu "$server_python" -m vllm.entrypoints.openai.api_server --model "$model" \
    --host 127.0.0.1 --port "$port" --dtype bfloat16 --max-model-len 8192 \
    --logprobs-mode processed_logprobs --generation-config vllm \
    --weight-transfer-config '{"backend": "weightgym"}' ${SERVER_ARGUMENTS:-} >"$logs/$port.log" 2>&1 &
  servers="$servers $!"
  urls="$urls${urls:+, }\"http://127.0.0.1:$port\""
  port=$((port + 1))
done

waited=0
for one in $servers; do
  while ! "$python" -c "import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)" \
      "http://127.0.0.1:$first_port/health" 2>/dev/null; do
    kill -0 "$one" 2>/dev/null || { echo "server $first_port ended: see $logs/$first_port.log" >&2; exit 1; }
    [ "$waited" -lt "$start_timeout" ] || { echo "server $first_port is not ready in $start_timeout s" >&2; exit 1; }
    sleep 2
    waited=$((waited + 2))
  done
  first_port=$((first_port + 1))
done

export CUDA_VISIBLE_DEVICES="$trainer_gpus"
train "$(echo "$trainer_gpus" | tr , '\n' | wc -l)" "$here/train.toml" --model "$model" --backend.urls "[$urls]" "$@"
