package run

const long = `Run a container image as a task. carma picks its GPUs, waits until they have
room, shows the output and exits with the task's code.

Flags stand before the image, words behind it are the program's. These flags are
carma's directly behind the image too: --est-model, --host-mem, --shm-size,
--stop-grace, --user-label, --visibility; up to the first other word, or to --.

Without an image: --conda ENV, --venv FOLDER and --host run a program of this
machine from the present folder. Its container sees the machine's programs,
read-only, your home, and no services. -e ENV is short for --conda ENV where
nothing stands before -- and ENV has no =; with an image -e takes your variable.

-it gives the task your terminal once it has started, as docker run -it. Keys
ctrl-p ctrl-q leave it running, and carma attach takes it again. -i alone sends
it your input, from a pipe too. See docs/tasks.md.

Ctrl-C stops the task; a second one returns at once with code 130, and does not
call that off. Ctrl-\ leaves the task running. A task outlives the terminal and
the daemon.

--array, --sweep and a task file (-f) submit several tasks at once, all or none.
Their output has the task's name before each line. The exit code is the highest
of theirs. -d prints their ids. See docs/tasks.md.

Memory has a unit: 512M, 12G. A time is 90 (seconds), 90s, 30m, 2d, 2:00:00 or
1-12:00:00 (days-hours:minutes:seconds).

The GPU memory that is booked for a task is the first of these that is known:
  --mem, unless earlier runs of the same image and command have used more
  the memory that those runs have used
  --probe: an estimate from the first steps of the program
  --est-model and --batch-size: as measured; with --precision, --seq, --lora and
  other settings of the training, else, as estimated from the layers; settings
  that no flag gives are read from the program's words, and a line says so
  an estimate from earlier runs at other batch sizes
  --params, --family and --batch-size: an estimate with a wide bound
Else nothing is known: the task is watched, and others join it once its memory
and activity were seen. An image can have the labels carma.est-model,
carma.batch-size, carma.gpus and carma.mem in place of the flags.`

const example = `  carma run my/training:1 --est-model resnet50
  carma run --est-model resnet50 --batch-size 64 my/training:1 --epochs 3
  carma run --est-model Qwen/Qwen2.5-7B --seq 2048 --lora 16 my/training:1
  carma run -d --mem 12G --gpus 2 -v ./data:/data:ro my/training:1
  carma run --conda exp --gpus 2 -- python train.py --lr 0.1
  carma run --array 1-100%8 my/training:1 --fold {index}
  carma run --sweep lr=0.1,0.01 --sweep bs=32,64 my/training:1 --lr {lr} -b {bs}
  carma run --after 17 my/evaluation:1; carma run -f tasks.yaml --dry-run`
