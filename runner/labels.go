package runner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
)

// The labels that identify a container: the data folder, the task, the attempt, and the
// task's nonce. A container with all of these labels belongs to the attempt, whatever it
// was made from. A container that lacks one of them does not.
const (
	LabelInstance = "carma.daemon"
	LabelTask     = "carma.task"
	LabelAttempt  = "carma.attempt"
	LabelNonce    = "carma.nonce"
)

// The labels that describe a container to people, and to a daemon that has lost
// its journal. They describe the launch and are never compared: the journal
// knows what the attempt may use now.
const (
	LabelName     = "carma.name"
	LabelImage    = "carma.image"
	LabelUser     = "carma.user"
	LabelUID      = "carma.uid"
	LabelGID      = "carma.gid"
	LabelGPUs     = "carma.gpus"        // UUIDs
	LabelGrants   = "carma.grants"      // UUID=bytes of each GPU
	LabelGrant    = "carma.grant-bytes" // the largest
	LabelAttach   = "carma.attach"      // how the container got its GPUs
	LabelHost     = "carma.host"        // host resources allocated, JSON
	LabelLaunched = "carma.launched"    // RFC 3339
)

// containerName is fixed by the daemon, the task and the attempt, so that the
// engine itself refuses to run an attempt twice.
func (r *Runner) containerName(task model.TaskID, attempt int) string {
	return fmt.Sprintf("carma-%s-%d-%d", r.instance, task, attempt)
}

// newNonce makes the random text by which a task differs from the task with the
// same number in another copy of the journal.
func newNonce() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// identity returns the labels that identify the attempt's container. Tasks of programs
// before nonces have no nonce, so any nonce matches.
func (w *worker) identity() map[string]string {
	id := map[string]string{
		LabelInstance: w.instance,
		LabelTask:     w.launch.Task.String(),
		LabelAttempt:  strconv.Itoa(w.launch.Attempt),
	}
	if w.rec.Nonce != "" {
		id[LabelNonce] = w.rec.Nonce
	}
	return id
}

// about returns the labels that describe the attempt.
func (w *worker) about(mode containers.Attach) map[string]string {
	grants := make([]string, len(w.launch.Grants))
	for i, g := range w.launch.Grants {
		grants[i] = fmt.Sprintf("%s=%d", g.GPU, g.Memory)
	}
	about := map[string]string{
		LabelName: w.rec.Name, LabelImage: w.rec.Submit.Source(),
		LabelUser: w.rec.User, LabelUID: strconv.Itoa(w.rec.UID), LabelGID: strconv.Itoa(w.rec.GID),
		LabelGPUs: strings.Join(w.uuids(), ","), LabelGrants: strings.Join(grants, ","),
		LabelGrant: strconv.FormatInt(int64(w.mostGranted()), 10), LabelAttach: string(mode),
	}
	if host, err := json.Marshal(w.launch.Host); err == nil {
		about[LabelHost] = string(host)
	}
	if a := w.rec.Task.Last(); a != nil && a.N == w.launch.Attempt {
		about[LabelLaunched] = a.Launched.Time().Format(time.RFC3339Nano)
	}
	return about
}

// uuids returns the UUIDs of the attempt's GPUs.
func (w *worker) uuids() []string {
	grants := w.grants()
	uuids := make([]string, len(grants))
	for i, g := range grants {
		uuids[i] = string(g.GPU)
	}
	return uuids
}

// mostGranted returns the largest of the attempt's grants.
func (w *worker) mostGranted() (most units.Bytes) {
	for _, g := range w.launch.Grants {
		most = max(most, g.Memory)
	}
	return most
}
