package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"carma/containers"
)

// wire is the server's side of a session. Each message begins with the number of its channel.
type wire struct {
	conn *websocket.Conn
	mu   sync.Mutex
}

func (w *wire) send(channel byte, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, p...))
}

// channel writes one output of a session.
type channel struct {
	of *wire
	n  byte
}

func (c channel) Write(p []byte) (int, error) { return len(p), c.of.send(c.n, p) }

// finish reports how a session ended, and ends the connection.
func (w *wire) finish(code int, fault error) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch {
	case fault != nil:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: fault.Error()}
	case code != 0:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}},
		}}
	}
	b, _ := json.Marshal(status)
	_ = w.send(remotecommand.StreamErr, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

// talk upgrades a request for a pod's exec or attach. The apiserver does so before it
// asks the kubelet, which may refuse.
func (c *cluster) talk(w http.ResponseWriter, r *http.Request, serve func(id, image string, to *wire) error) {
	c.mu.Lock()
	pod := c.pods[key(r.PathValue("ns"), r.PathValue("name"))]
	id, image := "", ""
	if pod != nil {
		id, image = c.ran[pod.UID], pod.Spec.Containers[0].Image
	}
	c.mu.Unlock()
	if pod == nil {
		notFound(w, "pods "+r.PathValue("name"))
		return
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	to := &wire{conn: conn}
	if id == "" {
		err = errors.New("container not found (\"task\")")
	} else {
		err = serve(id, image, to)
	}
	if err != nil {
		to.finish(0, err)
	}
}

// listen passes the client's input to a session, until the client closes the connection.
func listen(to *wire, input io.Writer, end func(), resize func(containers.Size)) {
	for {
		_, p, err := to.conn.ReadMessage()
		if err != nil {
			return
		}
		switch p[0] {
		case remotecommand.StreamStdIn:
			_, _ = input.Write(p[1:])
		case remotecommand.StreamResize:
			var size struct{ Width, Height uint16 }
			if json.Unmarshal(p[1:], &size) == nil {
				resize(containers.Size{Rows: size.Height, Cols: size.Width})
			}
		case remotecommand.StreamClose:
			end()
		}
	}
}

// hostImage is an image whose commands run on this machine.
const hostImage = "carma/host:1"

func (c *cluster) exec(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c.talk(w, r, func(id, image string, to *wire) error {
		if image == hostImage {
			return onHost(q["command"], to)
		}
		cmd := containers.Command{Args: q["command"], Stdin: q.Get("stdin") == "true", TTY: q.Get("tty") == "true"}
		s, err := c.engine.Exec(context.Background(), id, cmd)
		if err != nil {
			return err
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			listen(to, s, func() { _ = s.CloseWrite() }, func(size containers.Size) { _ = s.Resize(context.Background(), size) })
		}()
		_ = s.Copy(channel{to, remotecommand.StreamStdOut}, channel{to, remotecommand.StreamStdErr})
		code, err := s.Wait(context.Background())
		to.finish(code, err)
		<-gone
		return nil
	})
}

// onHost runs a command on this machine.
func onHost(args []string, to *wire) error {
	if !slices.Contains([]string{"/bin/sh"}, args[0]) {
		return errors.New(`exec: "` + args[0] + `": stat ` + args[0] + `: no such file or directory`)
	}
	cmd := exec.Command(args[0], args[1:]...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = channel{to, remotecommand.StreamStdOut}, channel{to, remotecommand.StreamStdErr}
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		listen(to, input, func() { _ = input.Close() }, func(containers.Size) {})
	}()
	err = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code < 0 { // ended by a signal: the exit code of a shell
		code = 143
	}
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		err = nil
	}
	to.finish(code, err)
	<-gone
	return nil
}

func (c *cluster) attach(w http.ResponseWriter, r *http.Request) {
	output := r.URL.Query().Get("stdout") == "true"
	c.talk(w, r, func(id, _ string, to *wire) error {
		s, err := c.engine.Attach(context.Background(), id)
		if err != nil {
			return err
		}
		if c.taken != nil {
			c.taken <- struct{}{}
		}
		over, gone, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			listen(to, s, func() { _ = s.CloseWrite(); close(ended) }, func(size containers.Size) { _ = s.Resize(context.Background(), size) })
		}()
		go func() {
			defer close(over)
			if output {
				_ = s.Copy(channel{to, remotecommand.StreamStdOut}, io.Discard)
			} else {
				_ = s.Copy(io.Discard, io.Discard)
			}
		}()
		select {
		case <-over:
		case <-gone:
		case <-ended:
		}
		_ = s.Close() // without a terminal, this ends the program's input
		to.finish(0, nil)
		<-gone
		return nil
	})
}
