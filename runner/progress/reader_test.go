package progress

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// task feeds lines to a reader, each some time after the one before.
type task struct {
	Reader
	at time.Time
}

func newTask() *task { return &task{at: start} }

func (k *task) print(after time.Duration, format string, a ...any) {
	k.at = k.at.Add(after)
	k.Feed(k.at, Stdout, fmt.Appendf(nil, format, a...))
}

// confirm marks the counters as confirmed, as if they had moved twice.
func (k *task) confirm() {
	for i := range k.count.list[:k.count.n] {
		k.count.list[i].moves = 2
	}
}

func (k *task) want(t *testing.T, done, total float64, unit string) Progress {
	t.Helper()
	p, ok := k.Progress(k.at)
	if !ok || p.Done != done || p.Total != total || p.Unit != unit {
		t.Errorf("%g of %g %s, want %g of %g %s; %+v", p.Done, p.Total, p.Unit, done, total, unit, p)
	}
	return p
}

// TestNoProgress checks lines with numbers that are not training progress.
func TestNoProgress(t *testing.T) {
	for _, line := range []string{
		"Downloading model.safetensors:  45%|████▌     | 2.25G/4.98G [00:20<00:24, 110MB/s]", "Loading checkpoint shards:  21%|██ | 4/19 [01:06<04:11, 16.76s/it]",
		"Map:  33%|███▎      | 1000/3000 [00:00<00:00, 9986.79 examples/s]", "Map (num_proc=8):  33%|███▎      | 1000/3000 [00:00<00:00, 9986.79 examples/s]",
		"Generating train split:  33%|███▎      | 1000/3000 [00:00<00:00, 9986.79 examples/s]", "Running tokenizer on dataset:  50%|#####| 2/4 [00:01<00:01, 1.2ba/s]",
		"Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00,  1.39it/s]", "Validation DataLoader 0:  46%|███       | 73/157 [00:02<00:02, 37.48it/s]",
		"Evaluating:  20%|██        | 5/25 [00:01<00:04, 5.0it/s]", "Testing:  20%|██        | 5/25 [00:01<00:04, 5.0it/s]", "[Epoch 3] validation:  20%|██        | 5/25 [00:01<00:04, 5.0it/s]",
		"train: Scanning /data/labels/train.cache... 1000 images, 0 backgrounds, 0 corrupt: 100%|██████████| 1000/1000 [00:00<?, ?it/s]",
		"                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 8/8 [00:03<00:00,  2.17it/s]",
		"Test: [ 10/98]  Time: 0.120 (0.350)  Loss:   6.8936", "Test:   [10/40]  eta: 0:00:05  loss: 6.8 (6.8)", "04/21 21:03:52 - mmengine - INFO - Epoch(val) [1][10/90]    eta: 0:00:05  time: 0.1",
		"[12/345] Building CXX object CMakeFiles/foo.dir/foo.cc.o", "2024/01/24 02:46:39 starting", "01/24 02:46:39 starting",
		"max_steps: 5000", "--batch-size 64 --epochs 90", "warmup step: 500", "eval step 50/100", "Saving model checkpoint to ./out/checkpoint-500", "step 2s, 100ms each", "loss improved by 12%",
		"yolox.core.trainer:before_epoch:205 - go", "GPU 0: 40537MiB / 81920MiB", "12/24/2025 was a day", "http://host:8080/step/12", "version 1.2.3/4", "epoch time: 61.2 s",
	} {
		k := newTask()
		k.print(0, "%s\n%s\n", line, line)
		if p, ok := k.Progress(k.at); ok {
			t.Errorf("%q: %+v", line, p)
		}
	}
}

// TestLines checks the result for single lines of programs.
func TestLines(t *testing.T) {
	for line, want := range map[string]struct{ done, total, epoch float64 }{
		"Step: 120":                 {120, 0, 0},
		"global_step=34, loss=2":    {34, 0, 0},
		"epoch 3 of 10":             {2, 10, 3},
		"Epoch 3/10":                {2, 10, 3},
		"Epoch [3/10] loss: 0.5":    {3, 10, 3},
		" 12%":                      {12, 100, 0},
		"Training: 12.5 % complete": {12.5, 100, 0},
		"[120/5000] loss 0.3":       {120, 5000, 0},
		"step 1,200 of 5,000":       {1200, 5000, 0},
		"ep 55 train, step 1347, ce 0.324, 0.855 sec/step, complete 81.92%":                                                        {1347, 0, 55},
		"[2022-03-11 02:06:58,985] [INFO] [logging.py:69:log_dist] [Rank 0] step=40, skipped=2, lr=[5e-05], mom=[[0.9, 0.999]]":    {40, 0, 0},
		"03:22:14 [INFO] [TRAIN] [Rank 0] step: 289, loss: 0.4310, tokens_per_second: 76477.73, mfu: 337.59":                       {289, 0, 0},
		"2023-01-05 16:34:49,377   INFO  Train:    1/3 ( 33%) [  49/323 ( 15%)]  Loss: 36.77 (81.7)  LR: 1.351e-04":                {49, 969, 1},
		"[2020/11/16 11:11:26] root INFO: epoch: [0/100], iter: 10, lr: 0.001000, acc: 0.507812, ips: 89.39943":                    {10, 0, 1},
		"Train Epoch: 1 [ 32833536/407371776 (8%)] Loss: 0.40883 (0.4749) Data (t): 0.080 Batch (t): 1.762s, 37194/s LR: 0.000156": {32833536, 0, 1},
		"1|45|Loss: 1.2345: 100%|██████████| 45/45 [00:10<00:00,  4.1it/s]\r":                                                      {45, 0, 1},
		"Steps:   2%|▏         | 24/1000 [00:30<20:00,  1.25s/it, lr=1e-05, step_loss=0.0312]\r":                                   {24, 1000, 0},
		"Epoch 4    ----- ---- 232/291 0:00:33 • 0:00:09 7.00it/s loss: 0.398":                                                     {4*291 + 232, 0, 5},
		"[1,mpirank:0,algo-1]<stdout>:\x1b[0mEpoch 0:  50% 1/2 [00:00<00:00,  6.54it/s, loss=2.29, v_num=0]":                       {1, 0, 1},
		"  45/Unknown - 2s 87us/step - loss: 0.8068":                                                                               {45, 0, 0},
	} {
		k := newTask()
		k.print(0, "%s\n", line)
		if _, ok := k.Progress(k.at); ok {
			t.Errorf("%q: one line counts", line)
		}
		k.confirm()
		k.print(0, "%s\n", line)
		if p, ok := k.Progress(k.at); !ok || p.Done != want.done || p.Total != want.total || p.Epoch != want.epoch {
			t.Errorf("%q: %g of %g, epoch %g; want %+v (%s)", line, p.Done, p.Total, p.Epoch, want, p.Source)
		}
	}
}

// TestRanks checks that several processes that print the same lines with small delays count
// once.
func TestRanks(t *testing.T) {
	k := newTask()
	for e := range 3 {
		for s := 0; s <= 100; s += 2 {
			for rank := range 4 {
				k.print(250*time.Millisecond, "[rank%d]: \rEpoch %d/3:  %d%%|█| %d/100 [00:01<00:02, 2.0it/s]\n", rank, e+1, max(0, s-rank), max(0, s-rank))
			}
		}
		if e < 2 {
			k.print(0, "\rEpoch %d/3:   0%%|█| 0/100 [00:00<?, ?it/s]\n", e+2)
			k.print(0, "[rank1]: \rEpoch %d/3:  99%%|█| 99/100 [00:01<00:02, 2.0it/s]\n", e+1)
			k.want(t, float64(100*(e+1)), 300, Steps)
		}
	}
	if p := k.want(t, 300, 300, Steps); math.Abs(p.Rate-2) > 0.1 || p.Restarts != 0 {
		t.Errorf("%+v", p)
	}
}

// TestRanksOfBars checks that progress bars of several processes without an epoch also count
// once.
func TestRanksOfBars(t *testing.T) {
	k := newTask()
	for range 3 {
		for s := 0; s <= 104; s += 2 {
			for rank := range 4 {
				n := min(100, max(0, s-rank))
				k.print(250*time.Millisecond, "\r%d%%|█| %d/100 [00:01<00:02, 2.0it/s]\n", n, n)
			}
		}
		k.print(0, "\r  0%%|█| 0/100 [00:00<?, ?it/s]\n")
		k.print(0, "\r100%%|█| 100/100 [00:50<00:00, 2.0it/s]\n")
	}
	if p := k.want(t, 300, 0, Steps); math.Abs(p.Rate-2) > 0.1 {
		t.Errorf("%+v", p)
	}
}

// TestStartsAgain checks the progress of a program that restarts in the same attempt.
func TestStartsAgain(t *testing.T) {
	k := newTask()
	for s := 0; s <= 500; s += 10 {
		k.print(5*time.Second, "step %d/1000 loss 0.5\n", s)
	}
	before := k.want(t, 500, 1000, Steps)
	k.print(0, "Traceback: connection lost, starting again\n")
	for s := 0; s <= 100; s += 10 {
		k.print(10*time.Second, "step %d/1000 loss 0.5\n", s)
	}
	if p := k.want(t, 100, 1000, Steps); p.Restarts != before.Restarts+1 || math.Abs(p.Rate-1) > 0.05 {
		t.Errorf("%+v after %+v", p, before)
	}
	if _, ok := k.Speed(start, start.Add(100*time.Second)); ok {
		t.Error("a speed from before the restart")
	}
}

// TestTrainsAgain checks the progress of a program that then trains another model with the same
// epochs.
func TestTrainsAgain(t *testing.T) {
	k := newTask()
	for range 2 {
		for e := range 4 {
			for s := 1; s <= 50; s++ {
				k.print(time.Second, "Epoch %d/4 step %d/50\n", e+1, s)
			}
		}
	}
	if p := k.want(t, 200, 200, Steps); p.Restarts != 1 {
		t.Errorf("%+v", p)
	}
}

// TestSeldom: a line in several epochs that by chance has a higher step each time still counts
// for its own epoch.
func TestSeldom(t *testing.T) {
	k := newTask()
	for _, l := range [][2]int{{1, 550}, {4, 918}, {7, 1297}, {11, 112}, {14, 491}, {17, 871}, {20, 1250}, {20, 1563}} {
		k.print(75*time.Second, "epoch %d/20 step %d/1563 loss 0.5\n", l[0], l[1])
	}
	if p := k.want(t, 20*1563, 20*1563, Steps); p.Restarts != 0 {
		t.Errorf("%+v", p)
	}
}

// TestResumed checks that the skipped steps of an earlier run do not count for the speed.
func TestResumed(t *testing.T) {
	k := newTask()
	k.print(0, "\r  0%%|          | 0/4000 [00:00<?, ?it/s]")
	for s := 2500; s < 2520; s++ {
		k.print(2*time.Second, "\r %d%%|██████    | %d/4000 [00:02<00:02, 900it/s]", s/40, s)
	}
	k.print(2*time.Second, "\n")
	p := k.want(t, 2519, 4000, Steps)
	if s, ok := k.Since(start); math.Abs(p.Rate-0.5) > 0.05 || !ok || math.Abs(s.Rate-0.5) > 0.05 {
		t.Errorf("%+v; since the start %+v", p, s)
	}
}

// TestPreparation checks that a bar without a name that ends before the training is not
// training progress.
func TestPreparation(t *testing.T) {
	k := newTask()
	for i := 0; i <= 50; i++ {
		k.print(time.Second, "\r%d%%|█| %d/50 [00:01<00:02, 1.0it/s]", 2*i, i)
	}
	for s := 0; s <= 200; s++ {
		k.print(2*time.Second, "\r%d%%|█| %d/4000 [00:01<00:02, 0.5it/s]", s/40, s)
	}
	k.print(0, "\n")
	if p := k.want(t, 200, 4000, Steps); math.Abs(p.Rate-0.5) > 0.02 || p.Doubt != PerhapsOf {
		t.Errorf("%+v", p)
	}
}

// TestLongEvaluation: an evaluation within a bar, longer than the training was before it, does
// not replace the training's progress.
func TestLongEvaluation(t *testing.T) {
	k := newTask()
	train := func(from, to int) {
		for s := from; s <= to; s++ {
			k.print(time.Second, "\r%d%%|█| %d/4000 [00:01<00:02, 1.0it/s]\r", s/40, s)
		}
	}
	train(0, 100)
	for i := 0; i <= 50; i++ {
		k.print(10*time.Second, "\r%d%%|█| %d/50 [00:01<00:02, 0.1it/s]\r", 2*i, i)
	}
	train(101, 160)
	if p := k.want(t, 160, 4000, Steps); math.Abs(p.Rate-1) > 0.05 {
		t.Errorf("%+v", p)
	}
}

// TestOtherClock: times in a bar that run at another speed than ours, as in a machine that
// was suspended, are not used.
func TestOtherClock(t *testing.T) {
	k := newTask()
	for s := 0; s <= 300; s++ {
		k.print(60*time.Second, "\rSteps: %d%%|█| %d/1000 [00:%02d<00:02, 1.0it/s]", s/10, s, s%60)
	}
	if p, _ := k.Progress(k.at); math.Abs(p.Rate*60-1) > 0.05 {
		t.Errorf("%+v", p)
	}
}

// TestEpochAtOnce: an engine's log hands over the bar of an epoch when its line ends. Each
// epoch's lines then come at one time.
func TestEpochAtOnce(t *testing.T) {
	for _, counts := range [][]int{{522, 1303, 1563}, {800, 1563}} {
		var r Reader
		for epoch := 1; epoch <= 12; epoch++ {
			var b strings.Builder
			for _, n := range counts {
				fmt.Fprintf(&b, "\rEpoch %d/50: %3d%%|███▎      | %d/1563 [00:%02d<00:15, 65.12it/s, loss=6.03]", epoch, 100*n/1563, n, 24*n/1563)
			}
			now := start.Add(time.Duration(epoch) * 24 * time.Second)
			r.Feed(now, Stderr, []byte(b.String()+"\n"))
			p, ok := r.Progress(now)
			if ok && math.Abs(p.Share-float64(epoch)/50) > 0.001 || epoch > 6 && (!ok || !p.Trusted) {
				t.Errorf("%d lines an epoch, epoch %d: %+v, %v", len(counts), epoch, p, ok)
			}
		}
	}
}

// TestSilent checks that the progress of a training that has stopped printing is not trusted.
func TestSilent(t *testing.T) {
	k := newTask()
	for s := 0; s <= 100; s++ {
		k.print(time.Second, "step %d/1000\n", s)
	}
	for after, want := range map[time.Duration]Doubt{0: NoDoubt, 20 * time.Second: NoDoubt, 5 * time.Minute: Silent} {
		if p, _ := k.Progress(k.at.Add(after)); p.Doubt != want {
			t.Errorf("after %v: %q", after, p.Doubt)
		}
	}
}

// TestFlood: progress is found in much other output.
func TestFlood(t *testing.T) {
	k := newTask()
	noise := strings.Repeat("DEBUG 12:00:00 batch loaded from /data/shard-0001.tar in 0.2 ms\n", 500)
	for s := 0; s <= 1000; s++ {
		k.print(100*time.Millisecond, "%s", noise)
		k.print(100*time.Millisecond, "step %d/2000\n", s)
	}
	if p, ok := k.Progress(k.at); !ok || p.Done < 950 || p.Total != 2000 || math.Abs(p.Rate-5) > 0.3 {
		t.Errorf("%+v", p)
	}
}

// TestSampled: of many lines at once only the first are parsed, and after some
// time more.
func TestSampled(t *testing.T) {
	k := newTask()
	for s := range 3 {
		k.print(time.Second, "step %d/50000\n", s)
	}
	var b strings.Builder
	for s := range 20000 {
		fmt.Fprintf(&b, "step %d/50000\n", s)
	}
	k.print(0, "%s", b.String())
	k.want(t, parseBurst-2, 50000, Steps) // one was parsed just before
	k.print(time.Second, "step 21000/50000\n")
	k.want(t, 21000, 50000, Steps)
}

// TestCursor: text that prepares the next line, Keras's backspaces and tqdm's cursor
// movement, does not set the time of the line.
func TestCursor(t *testing.T) {
	for _, then := range []string{"\b\b\b\b", "\x1b[A", "\x1b[0m"} {
		k := newTask()
		k.print(0, "step 0/40\n")
		k.print(7*time.Second, "step 1/40\n")
		k.print(7*time.Second, "step 2/40")
		k.print(60*time.Second, "%s", then)
		k.print(0, "\r")
		if p := k.want(t, 2, 40, Steps); p.Seen != start.Add(14*time.Second) {
			t.Errorf("%q: seen %v", then, p.Seen.Sub(start))
		}
	}
}

// TestParameters are the ways to print a model's size.
func TestParameters(t *testing.T) {
	for line, want := range map[string]Parameters{
		"trainable params: 12,600,000 || all params: 6,751,015,936 || trainable%: 0.1866": {6751015936, 12600000},
		"23.5 M    Trainable params":     {0, 23.5e6},
		"134 K     Trainable params":     {0, 134e3},
		"1.2 B     Total params":         {1.2e9, 0},
		"2.1 M     Non-trainable params": {},
		"\x1b[1m Total params: \x1b[0m\x1b[38;5;34m25,636,712\x1b[0m (97.80 MB)":              {25636712, 0},
		"Trainable params: 25,583,592 (97.59 MB)":                                             {0, 25583592},
		"Non-trainable params: 53,120 (207.50 KB)":                                            {},
		"number of parameters: 123.59M":                                                       {123.59e6, 0},
		"Number of trainable parameters = 66,955,010":                                         {0, 66955010},
		" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296": {354871296, 0},
		"Model resnet50 created, param count:25557032":                                        {25557032, 0},
		`{"train_lr": 8e-05, "epoch": 249, "n_parameters": 11590840}`:                         {11590840, 0},
		"Model summary: 225 layers, 11,166,560 parameters, 11,166,544 gradients":              {11166560, 0},
		"Model llama3 debugmodel size: 6,139,136 total parameters":                            {6139136, 0},
		"0.209729 M parameters":                                                               {209729, 0},
		"params: lr 0.1, batch 64":                                                            {},
		"the 3 parameters are a, b, c":                                                        {},
	} {
		k := newTask()
		k.print(0, "%s\n", line)
		got, ok := k.Parameters()
		if math.Abs(got.Total-want.Total) > 1 || math.Abs(got.Trainable-want.Trainable) > 1 || ok != (want != Parameters{}) {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

// TestLine: the output of engines, lines without their ends and parts of lines.
func TestLine(t *testing.T) {
	var r Reader
	for i := range 3 {
		at := start.Add(time.Duration(i) * time.Second)
		r.Line(at, Stdout, []byte("step 1"), true)
		if i == 0 {
			r.Line(at, Stderr, []byte("step 7/70 is another stream"), false)
		}
		r.Line(at, Stdout, fmt.Appendf(nil, "%d/70", i), false)
	}
	if p, ok := r.Progress(start.Add(2 * time.Second)); !ok || p.Done != 12 || p.Total != 70 {
		t.Errorf("%+v", p)
	}
}

// TestStanding checks that an unfinished progress bar counts once after it has not changed for
// some time, that the whole bar counts if more of it follows, and that a cut line does not
// count.
func TestStanding(t *testing.T) {
	k := newTask()
	bar := func(i int) string { return fmt.Sprintf("\r%3d%%|## | %d/100 [%02d:%02d<10:00, 60.00s/it]", i, i, i, 0) }
	stands := func(after time.Duration) {
		k.at = k.at.Add(after)
		k.Standing(k.at, Stdout)
		k.Standing(k.at, Stderr)
	}
	for i := 1; i <= 5; i++ {
		k.print(time.Minute-standsFor*time.Second, "%s", bar(i))
		stands(standsFor * time.Second)
	}
	k.want(t, 5, 100, Steps)
	seen := k.count.list[0].seen
	stands(time.Second)
	k.print(0, "\r")
	k.print(0, " \n")
	if k.count.list[0].seen != seen {
		t.Error("a bar that stood was read twice")
	}

	whole := bar(17)
	k.print(time.Minute, "%s", whole[:len(whole)-30])
	stands(standsFor * time.Second / 2)
	k.want(t, 5, 100, Steps)
	k.print(0, "%s", whole[len(whole)-30:])
	stands(standsFor * time.Second)
	k.want(t, 17, 100, Steps)

	k.print(0, "%s", bar(18))
	k.Cut(Stdout)
	k.Cut(Stderr)
	k.print(0, "\n")
	stands(time.Minute)
	k.want(t, 17, 100, Steps)
}

// TestOtherTotals: a line of another count with the same words does not change the total.
func TestOtherTotals(t *testing.T) {
	k := newTask()
	for s := 10; s <= 500; s += 10 {
		k.print(5*time.Second, "step %d/1000 loss 0.5\n", s)
		if s%50 == 0 {
			k.print(0, "tuning step 7/10\nstep 8 loss 0.4\n")
		}
	}
	if p := k.want(t, 500, 1000, Steps); p.Share == 0 || p.Restarts != 0 {
		t.Errorf("%+v", p)
	}
}

// TestFastBar checks that a bar that is far after its first second does not count as resumed.
func TestFastBar(t *testing.T) {
	k := newTask()
	for s := 1; s <= 12; s++ {
		k.print(400*time.Millisecond, "\rEpoch 01: %d%%|█| %d/153600 [00:%02d<00:05, 31000.00it/s]", s*100/12, s*12800, s*4/10)
	}
	k.print(0, "\n")
	if p, ok := k.Progress(k.at); !ok || p.Share != 0 {
		t.Errorf("%+v", p)
	}
}

// TestThroughEpochs checks that a count that continues over epochs, with occasional lines,
// gives the total within the distance of two lines, and no total while that distance is a large
// part of it.
func TestThroughEpochs(t *testing.T) {
	const epochs, steps, every, lines = 40, 15, 10, 59
	k := newTask()
	k.print(0, "Beginning of Epoch 1/%d\n", epochs)
	shown := 0
	for s := 1; s <= every*lines; s++ {
		k.print(time.Second, "")
		if s%steps == 1 && s > 1 {
			k.print(0, "Beginning of Epoch %d/%d\n", s/steps+1, epochs)
		}
		if s%every != 0 {
			continue
		}
		k.print(0, "[Rank 0] step=%d, skipped=0\n", s)
		p, ok := k.Progress(k.at)
		truth := float64(s) / (epochs * steps)
		if ok && p.Share > 0 {
			shown++
			if math.Abs(p.Share-truth) > 0.03 {
				t.Fatalf("step %d: share %.3f, in truth %.3f", s, p.Share, truth)
			}
		}
	}
	if shown < 10 {
		t.Errorf("a share after %d lines", shown)
	}
}
