package progress

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// program prints a training as some tool does.
type program struct {
	name   string
	form   string // tqdm, trainer, keras, words
	epochs int
	steps  int     // of an epoch
	step   float64 // seconds
	eval   float64 // seconds of evaluation after each epoch
	every  int     // steps between lines
	jitter float64 // of a step's time, relative
	late   float64 // seconds that a line may be late
	buffer int     // bytes that wait until they are as many
	// From slowFrom seconds on each step takes slower times as long.
	slowFrom, slower float64
}

// play prints the whole run into pieces and returns when its
// last step is done.
func (p program) play(seed uint64) (pieces []piece, end time.Duration) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var waiting bytes.Buffer
	now := 0.0
	emit := func(at float64, text string) {
		waiting.WriteString(text)
		if p.buffer == 0 || waiting.Len() >= p.buffer {
			if n := len(pieces); n > 0 {
				at = max(at, pieces[n-1].at.Seconds())
			}
			pieces = append(pieces, piece{time.Duration(at * float64(time.Second)), waiting.String()})
			waiting.Reset()
		}
	}
	for e := range p.epochs {
		emit(now, p.begin(e))
		for s := 1; s <= p.steps; s++ {
			d := p.step * (1 + p.jitter*(2*rnd.Float64()-1))
			if p.slower > 0 && now >= p.slowFrom {
				d *= p.slower
			}
			now += d
			if s%p.every == 0 || s == p.steps {
				emit(now+p.late*rnd.Float64(), p.line(e, s, now))
			}
		}
		end = time.Duration(now * float64(time.Second))
		if p.eval > 0 {
			for i := range 11 {
				emit(now, p.evaluation(i))
				now += p.eval / 11
			}
		}
	}
	return pieces, end
}

func (p program) begin(e int) string {
	if p.form == "keras" {
		return fmt.Sprintf("Epoch %d/%d\n", e+1, p.epochs)
	}
	return ""
}

func (p program) line(e, s int, now float64) string {
	clock := func(t float64) string { return fmt.Sprintf("%02d:%02d", int(t)/60, int(t)%60) }
	bar := func(n, of int) string {
		return fmt.Sprintf("%3d%%|%s| %d/%d", 100*n/of, strings.Repeat("█", 10*n/of)+strings.Repeat(" ", 10-10*n/of), n, of)
	}
	switch p.form {
	case "trainer":
		n := e*p.steps + s
		return fmt.Sprintf("\r%s [%s<%s, %5.2fit/s]\r%s\r{'loss': 0.5, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': %.2f}\n",
			bar(n, p.steps*p.epochs), clock(now), clock(now), 1/p.step, strings.Repeat(" ", 50), float64(n)/float64(p.steps))
	case "tqdm":
		return fmt.Sprintf("\rEpoch %d/%d: %s [%s<%s, %5.2fit/s, loss=0.5]", e+1, p.epochs, bar(s, p.steps), clock(now), clock(now), 1/p.step)
	case "keras":
		return fmt.Sprintf("\b\b\b\b\r\x1b[1m%d/%d\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m%ds\x1b[0m %dms/step - loss: 0.5%s",
			s, p.steps, 3, int(p.step*1000), strings.Repeat("\n", s/p.steps))
	}
	return fmt.Sprintf("[2026-03-01 09:00:00] INFO train: epoch %d/%d step %d/%d loss %.4f lr 1e-4\n", e+1, p.epochs, s, p.steps, 1/float64(s))
}

func (p program) evaluation(i int) string {
	switch p.form {
	case "trainer":
		return fmt.Sprintf("\r%3d%%|%s| %d/10 [00:01<00:02,  5.00it/s]", 10*i, strings.Repeat("#", i), i)
	case "tqdm":
		return fmt.Sprintf("\rValidation: %3d%%|%s| %d/10 [00:01<00:02,  5.00it/s]", 10*i, strings.Repeat("#", i), i)
	case "keras":
		return ""
	}
	return fmt.Sprintf("eval batch %d/10\n", i)
}

var programs = []program{
	{name: "bar, jitter", form: "tqdm", epochs: 10, steps: 500, step: 0.2, eval: 12, every: 5, jitter: 0.5},
	{name: "bar in lumps of an engine's log", form: "tqdm", epochs: 6, steps: 1000, step: 0.3, eval: 30, every: 2, jitter: 0.3, buffer: 16 << 10},
	{name: "trainer", form: "trainer", epochs: 5, steps: 800, step: 0.4, eval: 40, every: 20, jitter: 0.4},
	{name: "trainer, late lines", form: "trainer", epochs: 5, steps: 800, step: 0.4, eval: 40, every: 20, jitter: 0.4, late: 6},
	{name: "keras", form: "keras", epochs: 8, steps: 400, step: 0.3, eval: 15, every: 1, jitter: 0.5},
	{name: "words, buffered", form: "words", epochs: 8, steps: 2000, step: 0.1, eval: 20, every: 4, jitter: 0.5, buffer: 8 << 10},
	{name: "words, slow", form: "words", epochs: 20, steps: 100, step: 4, eval: 60, every: 25, jitter: 0.2},
	{name: "no evaluation", form: "words", epochs: 4, steps: 1000, step: 0.5, every: 50, jitter: 0.8, late: 4},
}

// TestRemaining: on runs with jitter, bursts, epochs and evaluations the time to the end is
// right within a tenth, and half an evaluation, once one was seen: a share of the
// evaluations so far is expected, not whole ones.
func TestRemaining(t *testing.T) {
	for _, prog := range programs {
		for seed := range uint64(5) {
			pieces, end := prog.play(seed)
			var r Reader
			next := 0.35
			for _, p := range pieces {
				if at := time.Duration(next * float64(end)); p.at > at {
					got, ok := r.Progress(start.Add(at))
					left := end - at
					off := (got.Remaining - left).Seconds()
					if !ok || math.Abs(off) > 0.1*left.Seconds()+prog.eval/2 {
						t.Errorf("%s, seed %d, at %v of %v: %v left of %v, %+.0f s off; rate %.3f within %.3f %s", prog.name, seed, at, end, got.Remaining, left, off, got.Rate, got.RateError, got.Doubt)
					}
					if !got.Trusted {
						t.Errorf("%s, seed %d: %s", prog.name, seed, got.Doubt)
					}
					next += 0.1
					if next > 0.9 {
						break
					}
				}
				r.Feed(start.Add(p.at), Stderr, []byte(p.text))
			}
		}
	}
}

// TestNeighbour: a neighbour that comes shows in Rate after 20 lines, and in
// Since against Speed within their errors.
func TestNeighbour(t *testing.T) {
	for _, prog := range programs {
		for _, slower := range []float64{1.25, 1.6, 3.5} {
			within := 0
			for seed := range uint64(5) {
				prog.slower = slower
				prog.slowFrom = float64(prog.steps) * float64(prog.epochs) * prog.step * 0.4
				pieces, _ := prog.play(seed)
				var r Reader
				came := time.Duration(prog.slowFrom * float64(time.Second))
				counts, checked := 0, false
				for _, p := range pieces {
					before := r.pace.count
					r.Feed(start.Add(p.at), Stderr, []byte(p.text))
					if p.at > came {
						counts += r.pace.count - before
					}
					if !checked && counts >= 22 && p.at > came+100*time.Second {
						checked = true
						got, _ := r.Progress(start.Add(p.at))
						if want := 1 / prog.step / slower; math.Abs(got.Rate/want-1) > 0.12 {
							t.Errorf("%s, seed %d, %g times slower: rate %.3f, want %.3f", prog.name, seed, slower, got.Rate, want)
						}
					}
				}
				alone, ok1 := r.Speed(start, start.Add(came))
				beside, ok2 := r.Since(start.Add(came))
				ratio := beside.Rate / alone.Rate
				off := math.Abs(ratio*slower - 1)
				if !ok1 || !ok2 || off > 0.12 {
					t.Errorf("%s, seed %d, %g times slower: %+v of %+v", prog.name, seed, slower, beside, alone)
				}
				if math.Abs(ratio-1/slower) < 3*ratio*math.Hypot(beside.Error, alone.Error)+0.02 {
					within++
				}
			}
			if within < 4 {
				t.Errorf("%s, %g times slower: only %d of 5 within three standard errors", prog.name, slower, within)
			}
		}
	}
}
