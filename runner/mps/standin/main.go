// Package standin simulates nvidia-cuda-mps-control in tests: its options, its folders
// and its command language (interface version 2) as the manual describes them, without a
// GPU.
//
// Further commands simulate clients: standin_connect PID GPU COMMAND connects a client
// (and starts a server, as the first client does), standin_leave PID disconnects it,
// standin_fault PID makes it fail.
package standin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Main runs the program and ends the process.
func Main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// answer is an error with the text of the real program.
type answer string

func (a answer) Error() string { return string(a) }

const name = "nvidia-cuda-mps-control"

func run(args []string) error {
	pipe := os.Getenv("CUDA_MPS_PIPE_DIRECTORY")
	if pipe == "" {
		pipe = "/tmp/nvidia-mps"
	}
	mode, multi := "", false
	for _, arg := range args {
		switch arg {
		case "-d", "-f":
			mode = arg
		case multiUser():
			multi = true
		default:
			return fmt.Errorf("unknown option %s", arg)
		}
	}
	switch mode {
	case "-d":
		return background(pipe, multi)
	case "-f":
		return serve(pipe, multi)
	}
	return ask(pipe, os.Stdin, os.Stdout)
}

// multiUser returns this program's spelling of the option that serves all users. The
// option has one dash if there is a file "old-spelling" beside the program.
func multiUser() string {
	if program, err := os.Executable(); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(program), "old-spelling")); err == nil {
			return "-multiuser-server"
		}
	}
	return "--multiuser-server"
}

func socket(pipe string) string { return filepath.Join(pipe, "control") }

// background starts the daemon and returns when it listens.
func background(pipe string, multi bool) error {
	if c, err := net.Dial("unix", socket(pipe)); err == nil {
		c.Close()
		return answer("An instance of this daemon is already running")
	}
	args := []string{"-f"}
	if multi {
		args = append(args, multiUser())
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	for range 500 {
		if c, err := net.Dial("unix", socket(pipe)); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the daemon does not listen")
}

// serve runs the control daemon.
func serve(pipe string, multi bool) error {
	_ = os.Remove(socket(pipe))
	l, err := net.Listen("unix", socket(pipe))
	if err != nil {
		return err
	}
	pidFile := filepath.Join(pipe, name+".pid")
	if err := os.WriteFile(pidFile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		return err
	}
	defer os.Remove(pidFile)
	logFile, err := os.OpenFile(filepath.Join(os.Getenv("CUDA_MPS_LOG_DIRECTORY"), "control.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	d := &daemon{multi: multi, threads: "100.0", uid: os.Geteuid(), gpus: os.Getenv("CUDA_VISIBLE_DEVICES")}
	fmt.Fprintf(logFile, "Start, user %d, devices %s, multi-user %t, libraries %q, path %s\n", d.uid, d.gpus, multi, os.Getenv("LD_LIBRARY_PATH"), os.Getenv("PATH"))
	for !d.quit {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		d.converse(c)
		c.Close()
	}
	fmt.Fprintln(logFile, "Exit")
	return nil
}

// converse answers one invocation of the command line. It reads one command per line, and
// writes for each its success and its output.
func (d *daemon) converse(c net.Conn) {
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		text, ok := "", false
		if peerMay(c, d.uid) {
			text, ok = d.answer(strings.Fields(lines.Text()))
		} else {
			text = "User did not start the control daemon"
		}
		fmt.Fprintf(c, "%t %q\n", ok, text)
		if d.quit {
			return
		}
	}
}

// peerMay reports whether the peer may send commands, as only root and the daemon's own
// user may.
func peerMay(c net.Conn, uid int) bool {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	may := false
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			may = cred.Uid == 0 || int(cred.Uid) == uid
		}
	})
	return may
}

// ask runs the command line.
func ask(pipe string, in io.Reader, out io.Writer) error {
	c, err := net.Dial("unix", socket(pipe))
	if err != nil {
		return answer("Cannot find MPS control daemon process")
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	failed := false
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := fmt.Fprintln(c, lines.Text()); err != nil {
			return err
		}
		text, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		var ok bool
		var answer string
		if _, err := fmt.Sscanf(text, "%t %q", &ok, &answer); err != nil {
			return err
		}
		if answer != "" {
			fmt.Fprintln(out, answer)
		}
		failed = failed || !ok
	}
	if failed {
		os.Exit(1)
	}
	return nil
}
