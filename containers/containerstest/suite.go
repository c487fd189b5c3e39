package containerstest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
)

// Images names the images that [Suite] needs on the engine.
type Images struct {
	// Tool is the suite's image, see [ToolPath].
	Tool string
	// Missing is an image that exists neither on this machine nor in any registry.
	Missing string
	Lacks   Lacks
}

// Lacks lists promises of the contract that an engine cannot keep. The suite checks the
// others.
type Lacks struct {
	// Streams is set if all output arrives as standard output, and pieces of lines of the
	// two streams may be mixed.
	Streams bool
	// Group is set if the engine uses only the number of an image's user, and group 0.
	Group bool
	// Images is set if an image is examined only when a container starts.
	Images bool
	// GPUs is set if the engine under test has no GPUs, not even simulated ones.
	GPUs bool
	// Shell is set if commands get an environment, a folder and signals only through a
	// shell, which the tool's image lacks.
	Shell bool
	// Prompt is set if a terminal's output before a session is connected is only in the log.
	Prompt bool
	// Bars is set if an unfinished line arrives neither in the log nor in a session.
	Bars bool
	// LogBytes is set if the engine decides how much of a log it keeps.
	LogBytes bool
}

// Suite checks every sentence of the [containers.Driver] contract. newDriver is called
// several times. Each call must return a new driver of the same engine, which the suite
// closes.
func Suite(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	tests := []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"engine", testEngine},
		{"image", testImage},
		{"create", testCreate},
		{"create again", testCreateAgain},
		{"create name conflict", testCreateConflict},
		{"create invalid", testCreateInvalid},
		{"start invalid", testStartInvalid},
		{"start again", testStartAgain},
		{"start at the same time", testStartConcurrent},
		{"exit codes", testExitCodes},
		{"wait before start", testWaitBeforeStart},
		{"wait cancelled", testWaitCancelled},
		{"stop", testStop},
		{"stop kills after grace", testStopKills},
		{"stop many", testStopMany},
		{"stop what does not run", testStopIdle},
		{"remove", testRemove},
		{"remove while waiting", testRemoveWaiting},
		{"image defaults", testDefaults},
		{"overrides", testOverrides},
		{"mounts", testMounts},
		{"sandbox", testSandbox},
		{"options", testOptions},
		{"visible GPUs", testVisibleGPUs},
		{"no input", testNoInput},
		{"attach", testAttach},
		{"input ends", testInputEnds},
		{"input early", testInputEarly},
		{"terminal", testTerminal},
		{"exec", testExec},
		{"exec closed", testExecClosed},
		{"exec fails", testExecFails},
		{"exec terminal", testExecTerminal},
		{"park", testPark},
		{"park and never start", testParkOnly},
		{"list", testList},
		{"close", testClose},
		{"not found", testNotFound},
		{"concurrent use", testConcurrent},
		{"logs streams", testLogsStreams},
		{"logs long line", testLogsLongLine},
		{"logs last line", testLogsLastLine},
		{"logs since", testLogsSince},
		{"logs follow", testLogsFollow},
		{"logs now", testLogsNow},
		{"logs resumed", testLogsResumed},
		{"logs of short life", testLogsShortLife},
		{"logs cancelled", testLogsCancelled},
		{"logs unread", testLogsUnread},
		{"progress bar", testBar},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.run(t, newSuite(t, newDriver, img))
		})
	}
}

func newSuite(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) *suite {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	return &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: strings.ToLower(rand.Text())}
}

// suite is one test's driver and the helpers around it.
type suite struct {
	*testing.T
	d         containers.Driver
	ctx       context.Context
	img       Images
	newDriver func(*testing.T) containers.Driver
	mark      string // contained in the names and labels of this test's containers
	made      int
}

const markLabel = "carma.suite.test"

// spec returns a container of the tool with these arguments and a new name.
func (s *suite) spec(args ...string) containers.Spec {
	s.made++
	return containers.Spec{
		Name:    fmt.Sprintf("carma-suite-%s-%d", s.mark, s.made),
		Image:   s.img.Tool,
		Labels:  map[string]string{markLabel: s.mark},
		Command: args,
	}
}

func (s *suite) create(spec containers.Spec) string {
	s.Helper()
	id, err := s.d.Create(s.ctx, spec)
	if errors.Is(err, containers.ErrUnsupported) {
		s.Skip(err)
	}
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	s.removeLater(id)
	return id
}

func (s *suite) removeLater(id string) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.d.Remove(ctx, id); err != nil {
			s.Errorf("clean up: %v", err)
		}
	})
}

// start creates and starts the tool.
func (s *suite) start(args ...string) string {
	s.Helper()
	return s.startSpec(s.spec(args...))
}

func (s *suite) startSpec(spec containers.Spec) string {
	s.Helper()
	id := s.create(spec)
	if err := s.d.Start(s.ctx, id); err != nil {
		s.Fatalf("start: %v", err)
	}
	return id
}

func (s *suite) wait(id string) containers.Exit {
	s.Helper()
	exit, err := s.d.Wait(s.ctx, id)
	if err != nil {
		s.Fatalf("wait: %v", err)
	}
	return exit
}

// output runs spec to its end and returns the lines of its standard output.
func (s *suite) output(spec containers.Spec) []string {
	s.Helper()
	id := s.startSpec(spec)
	if exit := s.wait(id); exit.Code != 0 {
		s.Errorf("exit = %+v, want code 0", exit)
	}
	return s.logs(id, time.Time{}, false).lines(containers.Stdout)
}

// state looks the container up in the list of this test's containers.
func (s *suite) state(id string) containers.State {
	s.Helper()
	for _, c := range s.list() {
		if c.ID == id {
			return c.State
		}
	}
	s.Fatalf("container %s is not in the list", id)
	return ""
}

func (s *suite) list() []containers.Container {
	s.Helper()
	list, err := s.d.List(s.ctx, map[string]string{markLabel: s.mark})
	if err != nil {
		s.Fatalf("list: %v", err)
	}
	return list
}

// failsWith checks that err wraps want and that its text is fit to be shown to users.
func (s *suite) failsWith(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: error %v, want one that wraps %q", what, err, want)
		return
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		s.Errorf("%s: error of more than one line: %q", what, err)
	}
}

func (s *suite) equal(what string, got, want []string) {
	s.Helper()
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	part := func(lines []string) []string {
		out := []string{}
		for _, l := range lines[i:min(i+4, len(lines))] {
			out = append(out, l[:min(len(l), 60)])
		}
		return out
	}
	s.Errorf("%s: %d lines, want %d; from line %d on %q, want %q", what, len(got), len(want), i+1, part(got), part(want))
}
