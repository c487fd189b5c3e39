package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// argvOf splits a line into words, at "|" if it contains any, otherwise at spaces.
func argvOf(line string) []string {
	if strings.Contains(line, "¦") {
		return strings.Split(line, "¦")
	}
	return strings.Fields(line)
}

// file has the files that the commands of the tests may name.
func file(name string) ([]byte, error) {
	if name == "acc.yaml" {
		return []byte("distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 4\n"), nil
	}
	return nil, os.ErrNotExist
}

// TestGPUs: for each command line, the number taken if none was given, and the message
// for a task with 1 GPU and with 4. +N means N are taken, ! refused, ? doubted, ~ that
// some stay idle. Empty means no message.
func TestGPUs(t *testing.T) {
	for _, row := range []struct{ line, free, one, four string }{
		// The launchers of PyTorch.
		{"torchrun --nproc_per_node 4 train.py", "+4", "!", ""},
		{"torchrun --nproc-per-node=4 train.py --lr 1", "+4", "!", ""},
		{"torchrun --standalone --nproc_per_node=2 train.py", "+2", "!", "~"},
		{"torchrun --nproc_per_node=gpu train.py", "", "", ""},
		{"torchrun --nproc_per_node=auto train.py", "", "", ""},
		{"torchrun train.py", "", "", "~"},
		{"torchrun --nnodes=1 --node_rank=0 --nproc_per_node=4 --master_port 1 train.py", "+4", "!", ""},
		{"torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --nproc-per-node 3 -m pkg.train", "+3", "!", "~"},
		{"torchrun --nproc_per_node 4 train.py --backend gloo --device cpu", "", "", ""},
		{"torchrun train.py --nproc_per_node 4", "", "", "~"},
		{"python -m torch.distributed.run --nproc_per_node 4 train.py", "+4", "!", ""},
		{"python3 -u -m torch.distributed.launch --nproc_per_node=4 --use_env train.py", "+4", "!", ""},
		{"python -um torch.distributed.launch --nproc_per_node=4 train.py", "+4", "!", ""},
		{"bash¦-c¦export N=4; cd /w && torchrun --nproc_per_node=$N train.py 2>&1", "+4", "!", ""},
		{"bash¦-lc¦torchrun --nproc_per_node=${NGPU:-2} train.py", "+2", "!", "~"},
		{"bash¦-c¦torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) train.py", "", "", ""},
		{"conda run -n x torchrun --nproc_per_node 4 train.py", "+4", "!", ""},
		{"uv run torchrun --nproc_per_node 4 train.py", "+4", "!", ""},
		{"nohup torchrun --nproc_per_node 4 train.py", "+4", "!", ""},
		{"bash¦-c¦if true; then torchrun --nproc_per_node 4 t.py; fi", "?", "?", ""},
		// Other launchers.
		{"accelerate launch --num_processes 4 train.py", "+4", "!", ""},
		{"accelerate launch --multi_gpu --num_processes=4 --mixed_precision bf16 train.py --a b", "+4", "!", ""},
		{"accelerate launch --num_processes 8 --num_machines 2 train.py", "+4", "!", ""},
		{"accelerate launch --gpu_ids 0,1,2,3 train.py", "+4", "!", ""},
		{"accelerate launch --gpu_ids 2,3 --num_processes 2 train.py", "!", "!", "~"},
		{"accelerate launch --gpu_ids all train.py", "", "", ""},
		{"accelerate launch --cpu --num_processes 4 train.py", "", "", ""},
		{"accelerate launch --config_file acc.yaml train.py", "+4", "!", ""},
		{"accelerate launch train.py", "", "", ""},
		{"python -m accelerate.commands.launch --num_processes 4 train.py", "+4", "!", ""},
		{"python -m accelerate.commands.accelerate_cli launch --num_processes 4 train.py", "+4", "!", ""},
		{"deepspeed --num_gpus 4 train.py --deepspeed ds.json", "+4", "!", ""},
		{"deepspeed --num_gpus=4 train.py", "+4", "!", ""},
		{"deepspeed --include localhost:0,1 train.py", "+2", "!", "~"},
		{"deepspeed --include=localhost:2,3 --master_port 29501 train.py", "!", "!", "~"},
		{"deepspeed train.py --deepspeed_config ds.json", "", "", ""},
		{"mpirun -np 4 python train.py", "+4", "?", ""},
		{"mpirun --allow-run-as-root -x PATH -np 4 python train.py", "+4", "?", ""},
		{"mpiexec -n 4 python -m mpi4py train.py", "+4", "?", ""},
		{"mpirun -mca btl ^openib --map-by ppr:4:node python t.py", "+4", "?", ""},
		{"mpirun -np 4 gmx_mpi mdrun -s x.tpr", "?", "?", ""},
		{"srun -n 4 python train.py", "+4", "?", ""},
		{"srun --ntasks-per-node=4 --gres=gpu:4 python train.py", "+4", "?", ""},
		{"horovodrun -np 4 -H localhost:4 python train.py", "+4", "!", ""},
		{"colossalai run --nproc_per_node 4 train.py", "+4", "!", ""},
		{"composer -n 4 train.py", "+4", "!", ""},
		{"tune run --nproc_per_node 4 lora_finetune_distributed --config x.yaml", "+4", "!", ""},
		{"fabric run --devices 4 --strategy ddp train.py", "+4", "!", ""},
		{"python -m paddle.distributed.launch --gpus 0,1,2,3 train.py", "+4", "!", ""},
		{"torchx run -s local_cwd dist.ddp -j 1x4 --script t.py", "+4", "!", ""},
		{"bash tools/dist_train.sh configs/x.py 4", "+4", "!", ""},
		{"./tools/dist_test.sh configs/x.py ckpt.pth 4", "+4", "!", ""},
		{"env NPROC_PER_NODE=4 swift sft --model x", "+4", "!", ""},
		{"env FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train x.yaml", "+2", "!", "~"},
		// Inference servers.
		{"vllm serve m -tp 4", "+4", "!", ""},
		{"vllm serve m --tensor-parallel-size 2 --pipeline-parallel-size 2", "+4", "!", ""},
		{"vllm serve m --tensor_parallel_size=4", "+4", "!", ""},
		{"vllm serve m --data-parallel-size 4", "+4", "!", ""},
		{"python -m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size 4", "+4", "!", ""},
		{"python3 -m sglang.launch_server --model-path m --tp 4", "+4", "!", ""},
		{"python3 -m sglang.launch_server --model-path m --tp-size 2 --dp-size 2", "+4", "!", ""},
		{"python3 -m sglang.launch_server --model-path m --tp 4 --dp 4 --enable-dp-attention", "+4", "!", ""},
		{"text-generation-launcher --model-id m --num-shard 4", "+4", "!", ""},
		{"env NUM_SHARD=4 text-generation-launcher --model-id m", "+4", "!", ""},
		{"trtllm-serve m --tp_size 4", "+4", "!", ""},
		{"lmdeploy serve api_server m --tp 4", "+4", "!", ""},
		{"llama-server -m m.gguf --tensor-split 1,1,1,1", "+4", "!", ""},
		{"bash¦-c¦exec vllm serve m -tp 4 | tee log", "+4", "!", ""},
		{"vllm serve m", "", "", ""},
		{"vllm serve m -tp 2 --device cpu", "", "", ""},
		{"vllm serve m -tp 8 --nnodes 2 --node-rank 0", "+4", "!", ""},
		{"python -m sglang.launch_server --model-path m --tp 4 --nnodes 2 --node-rank 0", "+2", "!", "~"},
		{"python -m sglang.launch_server --model-path m --base-gpu-id 2", "!", "!", ""},
		{"python -m sglang_router.launch_server --model-path m --dp-size 4", "+4", "!", ""},
		{"llama-server -m m.gguf -dev CUDA0,CUDA1", "+2", "!", "~"},
		{"llama-server -m m.gguf --device CUDA1", "!", "!", ""},
		{"llama-server -m m.gguf --device none", "", "", ""},
		{"trl vllm-serve --model m --tensor_parallel_size 2 --data_parallel_size 2", "+4", "!", ""},
		{"uvx --from vllm vllm serve m -tp 4", "+4", "!", ""},
		// Devices by their index.
		{"yolo detect train model=yolo11m.pt device=0,1,2,3", "+4", "!", ""},
		{"yolo train device=[0,1,2,3]", "+4", "!", ""},
		{"yolo train device=0", "", "", ""},
		{"yolo train device=3", "!", "!", ""},
		{"yolo train device=-1,-1", "+2", "!", "~"},
		{"yolo train device=-1", "", "", ""},
		{"yolo train device=cpu", "", "", ""},
		{"python train.py --device 0,1,2,3 --batch 64", "+4", "!", ""},
		{"python train.py --device cuda:3", "!", "!", ""},
		{"python train.py --device=cuda:0", "", "", ""},
		{"python train.py --device cuda", "", "", ""},
		{"python train.py model.device=cuda:1", "!", "!", ""},
		{"python train.py --teacher cuda:0 --student cuda:1", "+2", "!", "~"},
		{"python train.py --gpu 0,1", "+2", "!", "~"},
		{"python train.py --gpu_ids 0 1 2 3", "+4", "!", ""},
		{"python train.py --gpu-id 3", "!", "!", ""},
		{"python train.py --gpu 3", "?", "?", ""},
		{"python train.py --gpu 0", "", "", ""},
		{"python train.py -g 0,1", "+2", "?", ""},
		{"python train.py -g 4", "", "", ""},
		{"python capture.py --device 1", "?", "?", ""},
		{"python train.py cuda:1", "!", "!", ""},
		{"tabby serve --device-indices 0 --device-indices 1", "?", "?", ""},
		{"python train.py --devices 4 --accelerator cpu", "", "", ""},
		{"env NGPUS=4 bash train.sh", "?", "?", ""},
		{"trl sft --num_processes 4 --model_name_or_path x", "+4", "!", ""},
		{"axolotl train x.yaml --num-processes 4", "+4", "!", ""},
		{"srun -N 2 -n 8 python t.py", "+4", "?", ""},
		{"gmx mdrun -gputasks 0011", "+2", "!", "~"},
		{"python train.py --gpus 4", "+4", "!", ""},
		{"python train.py --gpus 0,1,2,3", "+4", "!", ""},
		{"python train.py --num-gpus 4 --config-file x.yaml", "+4", "!", ""},
		{"python train.py trainer.devices=4 trainer.accelerator=gpu", "+4", "!", ""},
		{"python main.py fit --trainer.devices 4 --trainer.accelerator=gpu", "+4", "!", ""},
		{"python main.py trainer.devices=[0,1]", "+2", "!", "~"},
		{"python main.py --devices -1", "", "", ""},
		{"python main.py --devices auto", "", "", ""},
		{"python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=4 trainer.nnodes=1", "+4", "!", ""},
		{"python gen.py --tensor_parallel_size 4", "+4", "?", ""},
		{"ns-train nerfacto --machine.num-devices 4", "+4", "!", ""},
		{"nnUNetv2_train 1 3d_fullres 0 -num_gpus 4", "+4", "!", ""},
		{"gmx mdrun -gpu_id 0123 -ntmpi 4", "+4", "!", ""},
		{"relion_refine --gpu 0:1:2:3 --o x", "+4", "!", ""},
		{"lmp -sf gpu -pk gpu 4 -in x", "+4", "!", ""},
		{"python train.py --epochs 4 --workers 8 --lr 4", "", "", ""},
		{"python train.py --num_workers=4 --use_gpu 1", "", "", ""},
		{"nvidia-smi --id 3 --gpu 7", "", "", ""},
		{"my-tool --gpus 4", "+4", "?", ""},
		{"", "", "", ""},
		// CUDA_VISIBLE_DEVICES counts the task's own GPUs.
		{"env CUDA_VISIBLE_DEVICES=0,1,2,3 python train.py", "+4", "!", ""},
		{"env CUDA_VISIBLE_DEVICES=0 python train.py", "", "", "~"},
		{"env CUDA_VISIBLE_DEVICES=2 python train.py", "!", "!", "~"},
		{"env CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node 2 train.py", "!", "!", "~"},
		{"env CUDA_VISIBLE_DEVICES=3 python train.py --device cuda:0", "!", "!", "~"},
		{"bash¦-c¦CUDA_VISIBLE_DEVICES=0 python a.py & CUDA_VISIBLE_DEVICES=1 python b.py & wait", "+2", "!", "~"},
		{"bash¦-c¦export CUDA_VISIBLE_DEVICES=0,1\npython a.py", "+2", "!", "~"},
		{"env CUDA_VISIBLE_DEVICES= python train.py", "~", "~", "~"},
		{"env CUDA_VISIBLE_DEVICES=-1 python train.py", "~", "~", "~"},
		{"env CUDA_VISIBLE_DEVICES=GPU-1 python train.py", "~", "~", "~"},
	} {
		r := Read(&Program{Command: argvOf(row.line), File: file})
		for _, c := range []struct {
			asked Asked
			want  string
		}{{Asked{GPUs: 1}, row.free}, {Asked{GPUs: 1, Given: true}, row.one}, {Asked{GPUs: 4, Given: true}, row.four}} {
			f := r.Fit(c.asked)
			if got := brief(f, c.asked); got != c.want {
				t.Errorf("%s: of %+v %q, want %q\n%s\n%s", row.line, c.asked, got, c.want, f.Refusal, strings.Join(f.Lines, "\n"))
			}
		}
		if f := r.Fit(Asked{None: true}); f.Refusal != "" || f.GPUs != 0 {
			t.Errorf("%s: without a GPU: %+v", row.line, f)
		}
	}
}

func brief(f Fit, a Asked) string {
	text := strings.Join(f.Lines, "\n")
	switch {
	case f.Refusal != "":
		return "!"
	case f.GPUs != a.GPUs:
		return fmt.Sprintf("+%d", f.GPUs)
	case strings.Contains(text, " may use ") || strings.Contains(text, " may name "):
		return "?"
	case text != "":
		return "~"
	}
	return ""
}

// TestFitWords checks the full text of messages.
func TestFitWords(t *testing.T) {
	for _, row := range []struct {
		line  string
		asked Asked
		want  string
	}{
		{"torchrun --nproc_per_node 4 t.py", Asked{GPUs: 1}, "--gpus 4, from torchrun --nproc_per_node 4"},
		{"torchrun --nproc_per_node 4 t.py", Asked{GPUs: 1, Given: true}, "torchrun --nproc_per_node 4 starts 4 processes with a GPU each, and the task gets 1 GPU: write --gpus 4, or --nproc_per_node 1"},
		{"torchrun --nproc_per_node 8 t.py", Asked{GPUs: 1, Most: 4}, "torchrun --nproc_per_node 8 starts 8 processes with a GPU each, and a task here can have 4 GPUs; write --nproc_per_node 4"},
		{"torchrun t.py", Asked{GPUs: 4, Given: true}, "torchrun starts one process, and the task gets 4 GPUs; write --nproc_per_node 4 to use them"},
		{"torchrun --nproc-per-node=2 t.py", Asked{GPUs: 4, Given: true}, "torchrun --nproc-per-node=2 starts 2 processes with a GPU each, and the task gets 4 GPUs: the others may stay idle; write --nproc-per-node=4, or --gpus 2"},
		{"python t.py --device cuda:3", Asked{GPUs: 1}, "--device cuda:3 names GPU 3, and the task gets 1 GPU, which it sees as GPU 0: write --device cuda:0, or --gpus 4"},
		{"yolo train device=0,1,2,3", Asked{GPUs: 2, Given: true}, "yolo device=0,1,2,3 names 4 GPUs, and the task gets 2 GPUs, which it sees as GPUs 0 to 1: write --gpus 4, or device=0,1"},
		{"yolo train device=2,3", Asked{GPUs: 1}, "yolo device=2,3 names 2 GPUs, and the task gets 1 GPU, which it sees as GPU 0: write device=0,1 and --gpus 2"},
		{"env CUDA_VISIBLE_DEVICES=2 python t.py", Asked{GPUs: 1}, "CUDA_VISIBLE_DEVICES=2 names GPU 2, and the task gets 1 GPU, which it sees as GPU 0: leave it out; --gpus device=2 asks for GPU 2 of the machine"},
		{"deepspeed --include localhost:2,3 t.py", Asked{GPUs: 2, Given: true}, "deepspeed --include localhost:2,3 names 2 GPUs, and the task gets 2 GPUs, which it sees as GPUs 0 to 1: write --include localhost:0,1, or --gpus 4"},
		{"vllm serve m -tp 2 -pp 2", Asked{GPUs: 1, Given: true}, "vllm serve -tp 2 -pp 2 uses 4 GPUs, and the task gets 1 GPU: write --gpus 4, or sizes whose product is 1"},
		{"mpirun -np 4 python t.py", Asked{GPUs: 1, Given: true}, "mpirun -np 4 may use 4 GPUs, and the task gets 1 GPU; if it does, write --gpus 4"},
		{"python t.py --gpu 3", Asked{GPUs: 1}, "t.py --gpu 3 may name a GPU by its index, and the task gets 1 GPU, which it sees as GPU 0; write --gpu 0, or --gpus 4"},
		{"env CUDA_VISIBLE_DEVICES= python t.py", Asked{GPUs: 1}, "CUDA_VISIBLE_DEVICES= hides the task's GPUs from its program; --gpus 0 books none"},
	} {
		f := Read(&Program{Command: argvOf(row.line)}).Fit(row.asked)
		if got := f.Refusal + strings.Join(f.Lines, "\n"); got != row.want {
			t.Errorf("%s, %+v:\ngot  %s\nwant %s", row.line, row.asked, got, row.want)
		}
	}
}

// TestImages checks that the image's entrypoint and command are read if the task has none, and
// that variables of the task and of the image are read.
func TestImages(t *testing.T) {
	for _, row := range []struct {
		p    Program
		want int
	}{
		{Program{Image: "vllm/vllm-openai:v1", Command: []string{"--model", "m", "-tp", "4"}}, 4},
		{Program{ImageEntrypoint: []string{"vllm", "serve"}, Command: []string{"m", "-tp", "4"}}, 4},
		{Program{ImageEntrypoint: []string{"/opt/nvidia/nvidia_entrypoint.sh"}, ImageCommand: []string{"torchrun", "--nproc_per_node=2", "t.py"}}, 2},
		{Program{ImageEntrypoint: []string{"torchrun", "--nproc_per_node=2"}, Entrypoint: []string{"python"}, Command: []string{"t.py"}}, 1},
		{Program{ImageEntrypoint: []string{"torchrun", "--nproc_per_node=2"}, Entrypoint: []string{""}, Command: []string{"python", "t.py"}}, 1},
		{Program{ImageEntrypoint: []string{"/simtask"}, Command: []string{"torchrun", "--nproc_per_node=2", "t.py"}}, 2},
		{Program{ImageEntrypoint: []string{"/start"}, Command: []string{"sh", "-c", "torchrun --nproc_per_node=2 t.py"}}, 2},
		{Program{ImageEntrypoint: []string{"python"}, Command: []string{"t.py", "--num_gpus", "2"}}, 2},
		{Program{Image: "x/text-generation-inference:3", Command: []string{"--model-id", "m"}, Env: []string{"NUM_SHARD=2"}}, 2},
		{Program{Env: []string{"CUDA_VISIBLE_DEVICES=0,1"}}, 2},
		{Program{ImageEnv: []string{"CUDA_VISIBLE_DEVICES=0,1"}}, 1},
		{Program{Env: []string{"N=2"}, Command: []string{"sh", "-c", "torchrun --nproc_per_node $N t.py"}}, 2},
		{Program{Env: []string{"PET_NPROC_PER_NODE=2"}, Command: []string{"torchrun", "t.py"}}, 2},
	} {
		if f := Read(&row.p).Fit(Asked{GPUs: 1}); f.GPUs != row.want || f.Refusal != "" {
			t.Errorf("%+v: %+v, want %d", row.p, f, row.want)
		}
	}
}

// TestNotes: pipes that hide a failure, launchers of several machines, folders.
func TestNotes(t *testing.T) {
	for script, want := range map[string]int{
		"python t.py 2>&1 | tee log": 1, "torchrun t.py | grep -v x | tee log": 1, "set -o pipefail; python t.py | tee log": 0, "set -euo pipefail\npython t.py | tee log": 0,
		"yes | ./install; python t.py": 0, "cat x | python t.py": 0, "python t.py > >(tee log)": 0, "python t.py | tee log; exit ${PIPESTATUS[0]}": 0, "cd /w && python t.py |& tee log": 1,
		"if true; then python t.py | tee log; fi": 0,
	} {
		if got := Read(&Program{Command: []string{"bash", "-c", script}}).Notes(); len(got) != want {
			t.Errorf("%s: %q", script, got)
		}
	}
	if got := Read(&Program{Command: argvOf("torchrun --nnodes 2 --nproc_per_node 4 t.py")}); got.Nodes == nil || !strings.HasPrefix(got.Notes()[0], "torchrun --nnodes 2: a task runs on one machine, and its launcher waits for 2") {
		t.Errorf("%+v", got.Nodes)
	}
	for line, want := range map[string][2]string{
		"python t.py --output_dir /out --resume_from_checkpoint /out/c1":     {"/out", "/out/c1"},
		"torchrun --nproc_per_node 2 t.py --save-dir=/s --resume":            {"/s", ""},
		"deepspeed t.py --output_dir /o --epochs 2":                          {"/o", "-"},
		"python pretrain_gpt.py --save /ck --load /ck":                       {"/ck", "/ck"},
		"python t.py trainer.default_root_dir=/r ckpt_path=/r/last.ckpt":     {"/r", "/r/last.ckpt"},
		"accelerate launch --num_processes 1 t.py --output_dir=o --resume=x": {"o", "x"},
		"python t.py --lr 1": {"-", "-"},
		"fairseq-train d --save-dir /c --restore-file /c/last.pt":       {"/c", "/c/last.pt"},
		"python3 -m verl.trainer.main_ppo trainer.default_local_dir=/c": {"/c", "-"},
		"nnUNetv2_train 501 3d_fullres 0 --c":                           {"-", ""},
		"python t.py --c x":                                             {"-", "-"},
		"python t.py --load_from_checkpoint=/c/a.ckpt":                  {"-", "/c/a.ckpt"},
	} {
		r := Read(&Program{Command: argvOf(line)})
		for i, f := range []*Fact{r.Checkpoints, r.Resume} {
			got := "-"
			if f != nil {
				got = f.Value
			}
			if got != want[i] {
				t.Errorf("%s: %q, want %q", line, got, want[i])
			}
		}
	}
}

// TestOneReading checks that the result contains the facts of all readers.
func TestOneReading(t *testing.T) {
	r := Read(&Program{Command: argvOf("bash¦-c¦torchrun --nproc_per_node 2 train.py --model_name_or_path a/b --per_device_train_batch_size 4 --bf16 true | tee log")})
	if r.Training.Model != "a/b" || r.Training.Batch != 4 || r.Batch != 4 {
		t.Errorf("%+v, %d", r.Training, r.Batch)
	}
	sglang := Program{Image: "lmsysorg/sglang:latest", Entrypoint: argvOf("python3 -m sglang.launch_server"), Command: argvOf("--model-path m --host 0.0.0.0 --port 30000")}
	if r := Read(&sglang); r.Server == nil || r.Server.Name != "SGLang" || r.Server.Share != 1 {
		t.Errorf("SGLang's own Compose file: %+v", r.Server)
	}
	if r := Read(&Program{Command: argvOf("vllm serve m")}); r.Server == nil || r.Server.Share != 0.9 {
		t.Errorf("%+v", r.Server)
	}
}
