package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carma/internal/suggest"
)

// plain is the default format of progress.
const plain = "plain"

// forms contains the formats of progress, by the values of --print. Each prints the state
// of training like the tool of that name; see runner/progress.
var forms = map[string]func(*trainer){
	plain:       (*trainer).plainLine,
	"none":      func(*trainer) {},
	"tqdm":      (*trainer).tqdmBar,
	"hf":        (*trainer).trainerBar,
	"lightning": (*trainer).lightningBar,
	"keras":     (*trainer).kerasBar,
	"steps":     (*trainer).stepLines,
}

// checkForm refuses an unknown format.
func checkForm(name string) error {
	names := make([]string, 0, len(forms))
	for n := range forms {
		names = append(names, n)
	}
	slices.Sort(names)
	if err := suggest.OneOf(name, names); err != nil {
		return fmt.Errorf("--print: %w", err)
	}
	return nil
}

// shown is the present content of the terminal.
type shown struct {
	began float64 // simulated seconds, when training began
	epoch int     // epoch of the bar, or 0 if there is none yet
	since float64 // simulated seconds, when that epoch began
	open  bool    // the last line is an unfinished bar
	lines int
}

// show prints the progress in the requested format.
func (t *trainer) show() {
	if t.bar.lines == 0 {
		t.bar.began = t.clock
	}
	forms[t.form](t)
	t.bar.lines++
}

// endBar ends the line of a bar before something else is printed.
func (t *trainer) endBar() {
	if t.bar.open {
		fmt.Fprintln(t.out)
		t.bar.open = false
	}
}

// perSecond returns the number of steps trained per simulated second.
func (t *trainer) perSecond() float64 {
	return float64(t.steps*t.epochs) / t.seconds * t.pace.Training / t.pace.Speed
}

// plainLine prints a line of a training script.
func (t *trainer) plainLine() {
	epoch, step := t.position()
	fmt.Fprintf(t.out, "epoch %d/%d step %d/%d loss %.4f %.1f samples/s\n", epoch, t.epochs, step, t.steps, t.loss(), t.perSecond()*float64(t.batch))
}

// stepLines prints a line at the same steps of every run, without times. A weight is
// learned step by step, and the loss is computed from the weight. So two runs print the
// same, unless steps were skipped or repeated.
func (t *trainer) stepLines() {
	all := t.steps * t.epochs
	every := max(1, all/50)
	for ; t.learned < t.done(); t.learned++ {
		if t.learned > 0 && t.learned%every == 0 {
			t.stepLine(t.learned)
		}
		wanted := math.Sin(float64(t.learned) * 0.01)
		t.weight += 0.05 * (wanted - t.weight)
	}
	if t.learned == all {
		t.stepLine(all)
	}
}

func (t *trainer) stepLine(done int) {
	epoch, step := (done-1)/t.steps+1, (done-1)%t.steps+1
	fmt.Fprintf(t.out, "epoch %d/%d step %d/%d weight %.12f\n", epoch, t.epochs, step, t.steps, t.weight)
}

// turn completes the bar of a finished epoch, and begins the next; begin and bar print
// them. It returns the step within the present epoch.
func (t *trainer) turn(begin func(epoch int), bar func(epoch, step int, elapsed float64)) {
	epoch, step := t.position()
	if epoch != t.bar.epoch {
		now := t.clock
		if t.perSecond() > 0 {
			now = max(t.bar.since, t.clock-float64(step)/t.perSecond())
		}
		if t.bar.epoch > 0 {
			bar(t.bar.epoch, t.steps, now-t.bar.since)
			t.endBar()
		}
		t.bar.epoch, t.bar.since = epoch, now
		begin(epoch)
	}
	bar(epoch, step, t.clock-t.bar.since)
	t.bar.open = true
	if t.done() == t.steps*t.epochs {
		t.endBar()
	}
}

// tqdmBar prints a tqdm bar for each epoch.
func (t *trainer) tqdmBar() {
	t.turn(func(int) {}, func(epoch, step int, elapsed float64) {
		fmt.Fprintf(t.out, "\rEpoch %d/%d: %s, loss=%.3g]", epoch, t.epochs, t.tqdm(step, t.steps, elapsed), t.loss())
	})
}

// lightningBar prints Lightning's bar: epochs count from 0, and their total is not shown.
func (t *trainer) lightningBar() {
	t.turn(func(int) {}, func(epoch, step int, elapsed float64) {
		fmt.Fprintf(t.out, "\rEpoch %d: %s, v_num=0, train_loss=%.3f]", epoch-1, t.tqdm(step, t.steps, elapsed), t.loss())
	})
}

// kerasBar prints the bar of Keras 3.
func (t *trainer) kerasBar() {
	const width = 20
	begin := func(epoch int) { fmt.Fprintf(t.out, "Epoch %d/%d\n", epoch, t.epochs) }
	t.turn(begin, func(_, step int, elapsed float64) {
		left, full := 0.0, width*step/t.steps
		if t.perSecond() > 0 {
			left = float64(t.steps-step) / t.perSecond()
		}
		if step == t.steps {
			left = elapsed
		}
		fmt.Fprintf(t.out, "\r\x1b[1m%d/%d\x1b[0m \x1b[32m%s\x1b[0m\x1b[37m%s\x1b[0m \x1b[1m%.0fs\x1b[0m %.0fms/step - loss: %.4f",
			step, t.steps, strings.Repeat("━", full), strings.Repeat("━", width-full), left, 1000/max(t.perSecond(), 1e-3), t.loss())
	})
}

// trainerBar prints the bar of Hugging Face's Trainer: one bar for the whole run, and a
// dictionary at every second line.
func (t *trainer) trainerBar() {
	const every = 2
	all := t.steps * t.epochs
	if t.bar.lines%every == every-1 {
		epoch, step := t.position()
		fmt.Fprintf(t.out, "\r%s\r{'loss': %.4f, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': %.2f}\n",
			strings.Repeat(" ", 60), t.loss(), float64(epoch-1)+float64(step)/float64(t.steps))
	}
	fmt.Fprintf(t.out, "\r%s]", t.tqdm(t.done(), all, t.clock-t.bar.began))
	t.bar.open = true
	if t.done() == all {
		t.endBar()
	}
}

// tqdm returns a tqdm bar without its name and its last bracket. Its speed and times are
// simulated.
func (t *trainer) tqdm(n, of int, elapsed float64) string {
	const width = 10
	eighths := width * 8 * n / of
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[part])
	}
	bar += strings.Repeat(" ", width-len([]rune(bar)))
	left, speed := "?", "?it/s"
	if rate := t.perSecond(); rate > 0 && n > 0 {
		left = clockTime(float64(of-n) / rate)
		speed = fmt.Sprintf("%.2fit/s", rate)
		if rate < 1 {
			speed = fmt.Sprintf("%.2fs/it", 1/rate)
		}
	}
	return fmt.Sprintf("%3d%%|%s| %d/%d [%s<%s, %s", 100*n/of, bar, n, of, clockTime(elapsed), left, speed)
}

// clockTime formats seconds as 27:10 or 1:02:03.
func clockTime(seconds float64) string {
	s := int(min(max(0, seconds), 1e9))
	if s < 3600 {
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
