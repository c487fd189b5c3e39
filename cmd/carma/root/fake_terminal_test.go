package root

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"carma/runner/api"
)

// exec simulates a command: "exit N" ends with code N, "echo WORDS" prints the words, "cat"
// prints the input, "hang" breaks the connection, and any other command ends with 0.
func (d *fakeDaemon) exec(w http.ResponseWriter, r *http.Request, t *fakeTask) {
	var e api.ExecRequest
	_ = json.NewDecoder(r.Body).Decode(&e)
	if t.Phase != "running" {
		problem(w, http.StatusConflict, "task %d does not run: it is %s", t.ID, t.Phase)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", api.TerminalProtocol)
	term, code := api.NewTerminal(conn), "0"
	switch e.Command[0] {
	case "echo":
		_ = term.Write(api.FrameStdout, []byte(strings.Join(e.Command[1:], " ")+"\n"))
		_ = term.Write(api.FrameStderr, []byte(fmt.Sprintln("env", e.Env, "in", e.WorkDir)))
	case "exit":
		code = e.Command[1]
	case "hang":
		return
	case "cat":
		for {
			f, err := term.Read()
			if err != nil || f.Kind == api.FrameEnd {
				break
			}
			_ = term.Write(api.FrameStdout, f.Data)
		}
	}
	_ = term.Write(api.FrameExit, []byte(code))
}
