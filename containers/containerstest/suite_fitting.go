package containerstest

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/option"
)

// testFittings checks settings that docker run has flags for.
func testFittings(_ *testing.T, s *suite) {
	spec := s.spec("look:hostname", "look:groups", "look:core", "look:first", "look:size:/scratch", "write:/scratch/new", "write:/scratch/ro/new", "look:node:/dev/own")
	spec.User = "4321:8765"
	spec.Hostname = "box-1"
	spec.Groups = []string{"4242", "4343"}
	spec.Ulimits = []string{"core=512:600"}
	spec.Init = true
	// Mounts are ordered by depth, whatever the order here.
	spec.Tmpfs = []string{"/scratch/ro:size=1M,ro", "/scratch:size=2M"}
	spec.Devices = []string{"/dev/null:/dev/own:rw"}
	id := s.startSpec(spec)
	if exit := s.wait(id); exit.Code != 0 {
		s.Errorf("exit = %+v, want code 0", exit)
	}
	lines := s.logs(id, time.Time{}, false).lines(containers.Stdout)
	if len(lines) > 1 { // engines add the user's own group
		lines[1] = strings.TrimSuffix(lines[1], " 8765")
	}
	s.equal("output", lines, []string{"box-1", "4242 4343", "512:600", "another", "2097152", "written", "refused", "1:3"})
	s.equal("without them", s.output(s.spec("look:first")), []string{"this"})
}

// testStopSignal checks a container's own stop signal, also with --init.
func testStopSignal(_ *testing.T, s *suite) {
	for _, init := range []bool{false, true} {
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
		t.Skipf("%s opens no ports", s.d.Name())
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
