package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/record"
	"carma/runner/suspend"
	"carma/runner/suspend/support"
)

// ProgramTarget is the path of carma in the container of a proof.
const ProgramTarget = "/.carma/carma"

// A suspended program must print nothing for proveStill. Lines that it printed before the
// suspension may arrive late, so the proof waits for up to proveWindows such intervals.
const (
	proveStill   = 500 * time.Millisecond
	proveWindows = 3
)

// proveSuspending suspends and resumes a small CUDA program on each idle GPU, in a
// container of image.
func (p *Prover) proveSuspending(ctx context.Context, rec *record.Record, gpus []GPU) []api.Check {
	notTried := func(gpus, why string) []api.Check {
		return []api.Check{{Name: "proof of suspending", Status: "ok", Detail: "not tried" + gpus + ": " + why}}
	}
	switch {
	case p.Simulated:
		return notTried("", "no GPU here, they are simulated")
	case p.Suspending == nil || p.Suspending.Off:
		_, _, why := p.Support.Kind(gpu.Device{}, false)
		return notTried("", why)
	}
	idle, err := p.idle(ctx)
	if err != nil {
		return notTried("", err.Error())
	}
	isIdle := map[model.GPUID]bool{}
	for _, id := range idle {
		isIdle[id] = true
	}
	var out []api.Check
	for _, d := range gpus {
		on := fmt.Sprintf(" on GPU %d", d.Index)
		if why, no := strings.CutPrefix(d.Suspend, support.Never); no {
			out = append(out, notTried(on, why)...)
			continue
		}
		if !isIdle[model.GPUID(d.UUID)] {
			out = append(out, notTried(on, "it is in use; the program would take memory from others")...)
			continue
		}
		c := api.Check{Name: "suspending on GPU " + fmt.Sprint(d.Index), Status: "ok"}
		one, cancel := context.WithTimeout(ctx, proveLimit)
		if c.Detail, err = p.proveSuspendOn(one, rec, model.GPUID(d.UUID)); err != nil {
			c.Status, c.Detail, c.Fix = "failure", err.Error(), "suspend: off in the configuration keeps carma from trying it with tasks"
			var unfit *unfitImage
			if errors.As(err, &unfit) {
				c.Status, c.Fix = "warning", "name an image with glibc, such as those with PyTorch"
			}
		}
		cancel()
		out = append(out, c)
	}
	return out
}

// unfitImage is the error that the program of the proof does not run in the image.
type unfitImage struct{ why string }

func (e *unfitImage) Error() string {
	return "not tried: carma itself, which is the program of the proof, does not run in this image: " + e.why
}

// proveSuspendOn makes the proof on one GPU, and returns the observations.
func (p *Prover) proveSuspendOn(ctx context.Context, rec *record.Record, id model.GPUID) (seen string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	alone := *rec
	alone.Task.NextExclusive = true
	attempt := p.Attempts.Attempt(&alone, model.Launch{Attempt: 1, Alone: true, Grants: []model.Grant{{GPU: id, Memory: proveGrant}}}, false)
	spec, err := attempt.Spec()
	if err != nil {
		return "", err
	}
	name, over := p.Trials.Name("doctor")
	defer over()
	spec.Name = name
	spec.Entrypoint, spec.Command, spec.Park = []string{ProgramTarget, suspend.ProgramCommand}, nil, false
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: program, Target: ProgramTarget, ReadOnly: true})
	container, err := p.Driver.Create(ctx, spec)
	if err != nil {
		return "", err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveLimit)
		defer cancel()
		_ = p.Suspending.By.Thaw(end, p.Attempts.Container(container, spec.Name)) // a frozen container cannot be killed
		err = errors.Join(err, p.Driver.Remove(end, container))
	}()
	if err := p.Driver.Start(ctx, container); err != nil {
		return "", &unfitImage{err.Error()}
	}
	said := p.listen(ctx, container)
	if _, err := said.until(ctx, suspend.ProgramReady); err != nil {
		return "", &unfitImage{err.Error()}
	}
	return p.suspendAndResume(ctx, p.Attempts.Container(container, spec.Name), said)
}

// suspendAndResume suspends the program of a proof and resumes it.
func (p *Prover) suspendAndResume(ctx context.Context, c suspend.Container, said *programOutput) (string, error) {
	o := p.Suspending
	if _, err := said.until(ctx, suspend.ProgramGood); err != nil {
		return "", err
	}
	off, err := o.By.Suspend(ctx, c, suspend.Facts{Driver: o.Driver, Arch: o.Arch, Bytes: suspend.ProgramBytes})
	if err != nil {
		return "", err
	}
	said.drain()
	for window := 1; ; window++ {
		select {
		case <-ctx.Done():
		case <-time.After(proveStill):
		}
		n := said.drain()
		if n == 0 {
			break
		}
		if window == proveWindows {
			return "", fmt.Errorf("the suspended program went on: it has looked at its memory %d times in %s", n, proveStill)
		}
	}
	back, err := o.By.Resume(ctx, c, off.Process, suspend.Target{Driver: o.Driver, Bytes: suspend.ProgramBytes})
	if err != nil {
		return "", err
	}
	if _, err := said.until(ctx, suspend.ProgramGood); err != nil {
		return "", fmt.Errorf("after it came back: %w", err)
	}
	return fmt.Sprintf("a program with %s left it in %s, was still for %s, came back in %s and found its memory unchanged",
		units.Bytes(suspend.ProgramBytes), took(off, suspend.CallLock, suspend.CallCheckpoint), proveStill, took(back, suspend.CallRestore, suspend.CallUnlock)), nil
}

// took returns the total time of some calls.
func took(res suspend.Result, calls ...suspend.Call) time.Duration {
	sum := time.Duration(0)
	for _, c := range calls {
		sum += res.Took[c]
	}
	return sum.Round(time.Millisecond)
}

// programOutput delivers the output lines of a proof's program as they arrive.
type programOutput struct{ lines chan string }

// listen reads the output of a container until it ends.
func (p *Prover) listen(ctx context.Context, id string) *programOutput {
	s := &programOutput{lines: make(chan string, 10_000)}
	p.left.Go(func() {
		defer close(s.lines)
		_ = p.Trials.Read(ctx, id, true, func(line string) {
			select {
			case s.lines <- line:
			default: // lines beyond the channel's size are dropped
			}
		})
	})
	return s
}

// until returns the first line that begins with a word. It is an error if the program has
// ended or reports a problem.
func (s *programOutput) until(ctx context.Context, word string) (string, error) {
	last := "it has printed nothing"
	for {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no %q from it: %w", word, ctx.Err())
		case line, ok := <-s.lines:
			switch first, rest, _ := strings.Cut(line, " "); {
			case !ok:
				return "", errors.New("it has ended: " + last)
			case first == word:
				return rest, nil
			case first == suspend.ProgramBad:
				return "", errors.New(rest)
			}
			last = line
		}
	}
}

// drain reads the lines that have arrived, and returns how many of them report a check of
// the program's memory.
func (s *programOutput) drain() (checks int) {
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return checks
			}
			if strings.HasPrefix(line, suspend.ProgramGood) {
				checks++
			}
		default:
			return checks
		}
	}
}
