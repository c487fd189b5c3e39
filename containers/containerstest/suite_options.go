package containerstest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/option"
)

// optionRow sets one option and proves its effect in the container.
type optionRow struct {
	set containers.ContainerOptions
	// args are arguments of the tool. They print want, and something else without the
	// option.
	args, want []string
	// prove takes the place of args and want where output alone proves nothing.
	prove func(t *testing.T, s *suite)
}

// optionRows has a row for each field of [containers.ContainerOptions].
var optionRows = map[string]optionRow{
	"WorkDir":  {set: containers.ContainerOptions{WorkDir: "/somewhere/else"}, args: []string{"dir"}, want: []string{"/somewhere/else"}},
	"ShmSize":  {set: containers.ContainerOptions{ShmSize: 48 << 20}, args: []string{"look:size:/dev/shm"}, want: []string{"50331648"}},
	"Pids":     {set: containers.ContainerOptions{Pids: 32}, prove: testPids},
	"Ulimits":  {set: containers.ContainerOptions{Ulimits: []string{"core=512:600"}}, args: []string{"look:core"}, want: []string{"512:600"}},
	"Init":     {set: containers.ContainerOptions{Init: true}, args: []string{"look:first"}, want: []string{"another"}},
	"IPC":      {set: containers.ContainerOptions{IPC: containers.IPCHost}, prove: testIPC},
	"Groups":   {set: containers.ContainerOptions{Groups: []string{"4242", "4343"}}, args: []string{"look:groups"}, want: []string{"4242 4343"}},
	"Hostname": {set: containers.ContainerOptions{Hostname: "box-1"}, args: []string{"look:hostname"}, want: []string{"box-1"}},
	"Devices":  {set: containers.ContainerOptions{Devices: []string{"/dev/null:/dev/own:rw"}}, args: []string{"look:node:/dev/own"}, want: []string{"1:3"}},
	// Mounts are ordered by depth, whatever the order here.
	"Tmpfs": {
		set:  containers.ContainerOptions{Tmpfs: []string{"/scratch/ro:size=1M,ro", "/scratch:size=2M"}},
		args: []string{"look:size:/scratch", "write:/scratch/new", "write:/scratch/ro/new"}, want: []string{"2097152", "written", "refused"},
	},
	"StopSignal":  {set: containers.ContainerOptions{StopSignal: "SIGUSR1"}, prove: testStopSignal},
	"Ports":       {set: containers.ContainerOptions{Ports: []string{"8765"}}, prove: testPorts},
	"Interactive": {set: containers.ContainerOptions{Interactive: true}, prove: testInteractive},
	"TTY":         {set: containers.ContainerOptions{TTY: true}, prove: testTTY},
}

// testOptions walks all fields of [containers.ContainerOptions]. Each has an effect, or the
// driver does not support it and refuses it in clear words.
func testOptions(t *testing.T, s *suite) {
	fields := reflect.TypeFor[containers.ContainerOptions]()
	for name := range s.d.Supports() {
		if _, is := fields.FieldByName(name); !is {
			t.Errorf("%s supports %s, and containers.ContainerOptions has no such field", s.d.Name(), name)
		}
	}
	for i := range fields.NumField() {
		field := fields.Field(i)
		t.Run(option.Name(field.Tag), func(t *testing.T) {
			row, has := optionRows[field.Name]
			if !has {
				t.Fatalf("nothing proves that the option %s has an effect: add a row to optionRows, and %s to Supports of the drivers that have it", field.Name, field.Name)
			}
			if reflect.ValueOf(row.set).FieldByIndex(field.Index).IsZero() {
				t.Fatalf("the row of %s does not set it", field.Name)
			}
			row.check(t, newSuite(t, s.newDriver, s.img), option.Name(field.Tag))
		})
	}
}

func (row *optionRow) check(t *testing.T, s *suite, name string) {
	spec := s.spec(row.args...)
	spec.User, spec.ContainerOptions = "4321:8765", row.set
	if unsupported := containers.CheckOptions(s.d, &row.set); unsupported != nil {
		t.Log(unsupported)
		_, err := s.d.Create(s.ctx, spec)
		refused, is := errors.AsType[*containers.UnsupportedError](err)
		if !is || refused.Option != name || refused.Driver != s.d.Name() || !errors.Is(err, containers.ErrUnsupported) || len(s.list()) > 0 {
			t.Errorf("it is not supported; Create returned %v, and made %d containers", err, len(s.list()))
		}
		return
	}
	t.Cleanup(func() {
		if t.Skipped() {
			t.Errorf("%s supports --%s, and its proof was skipped", s.d.Name(), name)
		}
	})
	if row.prove != nil {
		row.prove(t, s)
		return
	}
	output := func(spec containers.Spec) (lines []string) {
		for _, line := range s.output(spec) { // engines add the user's own group
			lines = append(lines, strings.TrimSuffix(line, " 8765"))
		}
		return lines
	}
	s.equal("output", output(spec), row.want)
	without := s.spec(row.args...)
	without.User = spec.User
	if lines := output(without); slices.Equal(lines, row.want) {
		t.Errorf("without the option the output is the same: %q", lines)
	}
}

// supports reports whether the driver supports options.
func (s *suite) supports(o containers.ContainerOptions) bool {
	return containers.CheckOptions(s.d, &o) == nil
}

// testPids compares how many processes the tool can start.
func testPids(t *testing.T, s *suite) {
	const many = 40
	forked := func(limit int64) (n int) {
		spec := s.spec(fmt.Sprintf("fork:%d", many))
		spec.Pids = limit
		id := s.startSpec(spec)
		s.wait(id) // with another code than 0 if the limit stopped the tool itself
		for _, line := range s.logs(id, time.Time{}, true).lines(containers.Stdout) {
			_, _ = fmt.Sscanf(line, "forked %d", &n)
		}
		return n
	}
	if limited, free := forked(32), forked(0); limited >= 32 || free != many {
		t.Errorf("%d processes started with a limit of 32, and %d of %d without", limited, free, many)
	}
}

// testIPC compares the container's IPC namespace with the test's own.
func testIPC(t *testing.T, s *suite) {
	own, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		t.Fatal(err)
	}
	for ipc, same := range map[string]bool{containers.IPCHost: true, "private": false, "shareable": false, "": false} {
		spec := s.spec("look:ipc")
		spec.IPC = ipc
		if lines := s.output(spec); len(lines) != 1 || (lines[0] == own) != same {
			t.Errorf("--ipc %q: namespace %q, this test's is %s", ipc, lines, own)
		}
	}
}

// testInteractive gives the program a line of input. testNoInput is the same without it.
func testInteractive(t *testing.T, s *suite) {
	spec := s.spec("input", "terminal")
	spec.Interactive = true
	id := s.create(spec)
	session, text, _ := s.attached(id)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	s.types(session, "one\n")
	s.shows(text, "got one")
	if err := session.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.wait(id)
	s.equal("output", s.logs(id, time.Time{}, false).lines(containers.Stdout), []string{"got one", "ended", "no terminal"})
}

// testTTY looks for the program's terminal. testNoInput is the same without it.
func testTTY(t *testing.T, s *suite) {
	spec := s.spec("terminal")
	spec.TTY = true
	if lines := s.output(spec); len(lines) != 1 || !strings.Contains(lines[0], " x ") {
		t.Errorf("output %q, want the size of a terminal", lines)
	}
}

// testStopSignal checks a container's own stop signal, also with --init.
func testStopSignal(_ *testing.T, s *suite) {
	for _, init := range []bool{false, true} {
		if !s.supports(containers.ContainerOptions{Init: init}) {
			continue
		}
		spec := s.spec("out:ready", "await")
		spec.StopSignal, spec.Init = "SIGUSR1", init
		id := s.startSpec(spec)
		s.follow(id).until("ready")
		if err := s.d.Signal(s.ctx, id); err != nil {
			s.Fatal(err)
		}
		s.wait(id)
		s.equal("output", s.logs(id, time.Time{}, false).lines(containers.Stdout), []string{"ready", "SIGUSR1"})
	}
}

// testPorts checks that a port is open on this machine's loopback, also for a later
// driver, and is free again after the end.
func testPorts(t *testing.T, s *suite) {
	p, can := s.d.(containers.Publisher)
	if !can {
		t.Fatalf("%s supports ports and does not say where they are open", s.d.Name())
	}
	later := s.newDriver(t)
	t.Cleanup(func() { _ = later.Close() })
	spec := s.spec("serve:8765", "serve:8765", "block:0")
	spec.Ports = []string{"8765"}
	id := s.startSpec(spec)
	follow := s.follow(id)
	follow.until("serving")
	open, err := p.Ports(s.ctx, id)
	if err != nil || len(open) != 1 || open[0].Port != 8765 || open[0].Protocol != "tcp" || open[0].Host == 0 {
		t.Fatalf("ports %v, %v", open, err)
	}
	s.greeted(open[0])
	if err := s.d.Close(); err != nil { // simulate a restart of the daemon
		t.Fatal(err)
	}
	s.d, p = later, later.(containers.Publisher)
	again, err := p.Ports(s.ctx, id)
	if err != nil || !slices.Equal(again, open) {
		t.Errorf("ports of another driver %v, %v; want %v", again, err, open)
	}
	s.greeted(open[0])

	second := s.spec("out:never")
	second.Ports = []string{fmt.Sprintf("%d:1", open[0].Host)}
	if _, fake := s.d.(*Fake); !fake { // the fake opens no ports
		taken := s.create(second)
		s.failsWith("a port that is taken", s.d.Start(s.ctx, taken), containers.ErrInvalid)
	}
	s.stop(id, time.Minute)
	if ports, err := p.Ports(s.ctx, id); err != nil || len(ports) != 0 {
		t.Errorf("ports after the end: %v, %v", ports, err)
	}
	second.Name, second.Command = s.spec().Name, []string{"out:second"}
	s.equal("a container after it", s.output(second), []string{"second"})
}

// greeted connects until the program, which may not listen yet, answers.
func (s *suite) greeted(p option.Port) {
	s.Helper()
	if _, fake := s.d.(*Fake); fake {
		return
	}
	for s.ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(s.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Host)))
		if err != nil {
			s.Fatal(err)
		}
		line, _ := bufio.NewReader(conn).ReadString('\n')
		_ = conn.Close()
		if line == "hello\n" {
			return
		}
	}
	s.Errorf("nothing answers on %v", p)
}
