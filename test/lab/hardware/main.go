// Hardware measures carma on a machine with a GPU. It compares the estimator with
// PyTorch's peaks, and carma's records with the tasks' own. It runs the same
// tasks exclusive and shared, and measures how pairs of tasks slow each other
// down. test/lab/hardware/run.sh starts it; docs/hardware/README.md describes the
// results.
//
// It changes no setting of a GPU. If something cannot be measured on a machine,
// the report says so; nothing is made up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// defaultMinutes is the time that the plan is made for.
const defaultMinutes = 9

// options are the options of the command line.
type options struct {
	out, bin, training, programs string
	python, gpu, engine          string
	pairMode, rates, networks    string
	minutes                      float64
	phases                       []string
	dryRun, noContainers         bool
}

// shares of the time, by phase. Time that a phase does not use is added to later phases.
var shares = map[string]float64{"environment": 0.04, "estimator": 0.21, "pairs": 0.37, "suite": 0.38, "faults": 0.26, "suspend": 0.34, "suspend-tasks": 0.4}

// phaseNames are in the order in which the phases run. The suite takes its
// lengths from the step times of the pairs.
var phaseNames = []string{"environment", "estimator", "pairs", "suite", "faults", "suspend", "suspend-tasks"}

// usualPhases are the phases without --phases.
var usualPhases = phaseNames[:4]

var engineNames = []string{"auto", "containerd", "docker"}

// Ways in which pairs share the card.
const (
	timeSlicing = "time-slicing"
	byMPS       = "mps"
	bothModes   = "both"
)

// Networks of the phase estimator.
const (
	usual  = "usual"
	others = "others" // to which nothing was fitted
)

var pairModes = []string{timeSlicing, byMPS, bothModes}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	opt, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "hardware:", err)
		return exitUsage
	}
	p := realPlan
	if opt.dryRun {
		p = dryPlan
	}
	if err := measure(ctx, opt, p, stderr); err != nil {
		fmt.Fprintln(stderr, "hardware:", err)
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var phases string
	f := flag.NewFlagSet("run.sh", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&opt.out, "out", "", "write the report and the CSV files to this `folder`")
	f.Float64Var(&opt.minutes, "minutes", defaultMinutes, "end after so many minutes, 1 to 600")
	f.BoolVar(&opt.dryRun, "dry-run", false, "simulated GPU, tiny shapes on the CPU: tries the suite out and measures nothing")
	f.BoolVar(&opt.noContainers, "no-containers", false, "only what needs no container engine")
	f.StringVar(&opt.engine, "engine", "auto", "what runs the containers: auto, containerd or docker")
	f.StringVar(&opt.gpu, "gpu", "0", "the GPU to use, by index or UUID")
	f.StringVar(&opt.pairMode, "pair-mode", timeSlicing, "how pairs share the GPU: time-slicing, mps or both")
	f.StringVar(&opt.networks, "networks", usual, "of the estimator: usual, or others, to which nothing was fitted")
	f.StringVar(&opt.rates, "rates", "", "take the suite's lengths from this `file`, the profiles.csv of an earlier run")
	f.StringVar(&phases, "phases", strings.Join(usualPhases, ","), "which phases, of "+strings.Join(phaseNames, ", "))
	f.StringVar(&opt.python, "python", "", "a Python with PyTorch (default: the first of python3 and /usr/bin/python3 that has it)")
	f.StringVar(&opt.bin, "bin", "bin", "folder of carma and simtask")
	f.StringVar(&opt.training, "training", "images/torch", "folder of carma_train")
	f.StringVar(&opt.programs, "programs", "test/lab/hardware", "folder of probe.py and worker.py")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(stderr)
			f.PrintDefaults()
			return opt, err
		}
		return opt, fmt.Errorf("%w; --help lists them", err)
	}
	opt.phases = strings.Split(phases, ",")
	return opt, opt.check(f.Args())
}

// check returns a fault of the command line, in one sentence.
func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q: no such argument; --help lists them", rest[0])
	case o.out == "":
		return errors.New("where to? add --out FOLDER")
	case !(o.minutes >= 1 && o.minutes <= 600):
		nearest := min(max(o.minutes, 1), 600)
		if math.IsNaN(nearest) {
			nearest = defaultMinutes
		}
		return fmt.Errorf("--minutes %g: not from 1 to 600; the nearest is %g", o.minutes, nearest)
	case !slices.Contains(engineNames, o.engine):
		return fmt.Errorf("--engine %q: none of %s", o.engine, strings.Join(engineNames, ", "))
	case !slices.Contains(pairModes, o.pairMode):
		return fmt.Errorf("--pair-mode %q: none of %s", o.pairMode, strings.Join(pairModes, ", "))
	case o.networks != usual && o.networks != others:
		return fmt.Errorf("--networks %q: none of %s, %s", o.networks, usual, others)
	case o.rates != "":
		if _, err := readRates(o.rates); err != nil {
			return fmt.Errorf("--rates: %w", err)
		}
	}
	for _, p := range o.phases {
		if !slices.Contains(phaseNames, p) {
			return fmt.Errorf("--phases %q: none of %s", p, strings.Join(phaseNames, ", "))
		}
	}
	for _, dir := range []*string{&o.out, &o.bin, &o.training, &o.programs} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	return os.MkdirAll(o.out, 0o755)
}

// session is one run of the suite.
type session struct {
	options
	plan     plan
	report   report
	log      io.Writer
	file     io.Writer // the log, for text that is too long for a screen
	card     *card     // nil if there is no GPU to read
	software stage     // versions of the Python with PyTorch
	env      []string  // additional environment of Python
	began    time.Time
	work     string // folder of all files that are not kept
}

// measure runs the phases and writes the report after each, so that results stay however
// the program ends. If a phase fails, the report says why it measured nothing, and the
// other phases continue.
func measure(ctx context.Context, opt options, p plan, stderr io.Writer) error {
	file, err := os.Create(filepath.Join(opt.out, "suite.log"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	s := &session{options: opt, plan: p, log: io.MultiWriter(stderr, file), file: file, began: time.Now()}
	s.report = report{Date: s.began.UTC().Format("2006-01-02 15:04 UTC"), Dry: opt.dryRun}
	if s.work, err = os.MkdirTemp("/tmp", "chw"); err != nil { // short, because it has sockets
		return err
	}
	defer func() { _ = os.RemoveAll(s.work) }()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(opt.minutes*float64(time.Minute)))
	defer cancel()

	findDriverPrograms()
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.close()
	steps := map[string]func(context.Context) error{"environment": s.environment, "estimator": s.estimates, "pairs": s.pairs, "suite": s.suite, "faults": s.faults, "suspend": s.suspend, "suspend-tasks": s.suspendTasks}
	for _, name := range phaseNames {
		s.report.omit(name, "not asked for")
		if slices.Contains(opt.phases, name) {
			s.report.omit(name, "the program ended before")
		}
	}
	for i, name := range phaseNames {
		if !slices.Contains(opt.phases, name) {
			continue
		}
		s.phase(ctx, name, s.share(i), steps[name])
		s.report.Seconds = time.Since(s.began).Seconds()
		if err := s.report.write(opt.out); err != nil {
			return err
		}
	}
	s.say("report in %s", filepath.Join(opt.out, "report.md"))
	return s.report.failure()
}

// phase runs one phase within its time.
func (s *session) phase(ctx context.Context, name string, limit time.Duration, f func(context.Context) error) {
	s.say("%s: at most %.0f s", name, limit.Seconds())
	began := time.Now()
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var omitted *notMeasured
	err := f(inner)
	delete(s.report.Omitted, name)
	switch {
	case errors.As(err, &omitted):
		s.report.omit(name, omitted.why)
	case err != nil:
		s.report.fail(name, err)
		s.say("%s failed: %v", name, err)
	}
	s.say("%s: %.1f s", name, time.Since(began).Seconds())
}

// leastEnvironment is the least time of the first phase, in seconds, however
// short the whole run. Loading CUDA's libraries from a cold disk takes long, and
// without the context no estimate can be scored.
const leastEnvironment = 60

// share returns the time of the i-th phase: its part of the time left for it and the later
// ones, less a margin to end in.
func (s *session) share(i int) time.Duration {
	left := s.minutes*60 - time.Since(s.began).Seconds() - 10
	if phaseNames[i] == "environment" {
		return time.Duration(max(1, min(left, leastEnvironment)) * float64(time.Second))
	}
	var sum float64
	for _, name := range phaseNames[i:] {
		if slices.Contains(s.phases, name) {
			sum += shares[name]
		}
	}
	return time.Duration(max(1, left*shares[phaseNames[i]]/sum) * float64(time.Second))
}

// remaining returns the time left of a phase.
func remaining(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	return time.Until(end)
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.log, "%6.1f s  "+format+"\n", append([]any{time.Since(s.began).Seconds()}, args...)...)
}

// notMeasured is the reason why a phase has no result on this machine. That is no failure of
// the suite.
type notMeasured struct{ why string }

func (e *notMeasured) Error() string { return e.why }

func omitf(format string, args ...any) error { return &notMeasured{fmt.Sprintf(format, args...)} }
