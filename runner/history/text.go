package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/deviceaccess"
	"carma/runner/record"
)

// eventText returns the history line of an event about a task, without text if the event has
// none. started holds the attempts whose start is already in a line: a daemon that adopts
// an attempt reports its start again.
func (r *Reader) eventText(id model.TaskID, ev model.Event, started map[int]bool) (l historyLine) {
	if model.About(ev) != id {
		return l
	}
	kind, _, _ := model.EncodeEvent(ev)
	l.Kind = kind
	switch ev := ev.(type) {
	case model.TaskSubmitted:
		l.Text = "submitted by " + cmp.Or(ev.User, "somebody") + requestText(&ev.Request)
	case model.Estimated:
		l.Text = estimateText(&ev.Estimate)
	case model.Started:
		if l.Attempt = ev.Attempt; !started[ev.Attempt] {
			l.Text = "its program runs"
		}
		started[ev.Attempt] = true
	case model.Exited:
		l.Attempt, l.Text = ev.Attempt, "ended: "+cmp.Or(ev.Message, fmt.Sprintf("exit code %d", ev.Code))
		if ev.Class == model.ExitProgram {
			l.public = "ended: " + cmp.Or(record.WithoutQuote(ev.Message), fmt.Sprintf("exit code %d", ev.Code))
		}
	case model.Cancel:
		l.Text = "is to end: " + cmp.Or(ev.Reason, "somebody asked for it")
	case model.HoldChanged:
		l.Text = "released by " + cmp.Or(ev.By, "carma")
		if ev.Hold {
			l.Text = words.Reason(model.Reason{Code: model.ReasonHold, Name: ev.By, Text: ev.Why})
		}
	case model.RequeueRequested:
		l.Text = words.Reason(model.Reason{Code: model.ReasonRecalled, Name: ev.By, Text: ev.Why})
	case model.TaskUpdated:
		l.Text = cmp.Or(ev.By, "carma") + " changed what was asked for: " + taskUpdateText(&ev.Change)
	case model.QueueMoved:
		l.Text = cmp.Or(ev.By, "carma") + " moved it to the front of the queue"
		if ev.Last {
			l.Text = cmp.Or(ev.By, "carma") + " moved it to the end of the queue"
		}
	case model.Pinned:
		l.Text = fmt.Sprintf("%s moves it to %s", ev.By, r.c.GPUs.Text(ev.GPUs))
		if ev.By == "" { // the submission named the GPUs
			l.Text = "it is bound to " + r.c.GPUs.Text(ev.GPUs)
		}
	case model.SuspendAsked:
		l.Text = cmp.Or(ev.By, "carma") + " asked to suspend it"
		if ev.Why != "" {
			l.Text += ": " + ev.Why
		}
	case model.SuspendedOutOfBand:
		l.Attempt, l.Text = ev.Attempt, words.Reason(model.Reason{Code: model.ReasonFoundAway})
	case model.DevicesChecked:
		l.Attempt, l.Text = ev.Attempt, deviceaccess.Text(&model.DeviceLoss{State: ev.State, GPUs: ev.GPUs}, r.c.GPUs.Text)
	case model.SuspendDone:
		l.Attempt, l.Text = ev.Attempt, "is suspended"
		if ev.Failure != "" {
			l.Text = "could not be suspended and runs on: " + ev.Failure
		}
	case model.ResumeAsked:
		l.Text = cmp.Or(ev.By, "carma") + " asked to resume it"
	case model.Resumed:
		l.Attempt, l.Text = ev.Attempt, "runs again"
		if ev.Failure != "" {
			l.Text = "could not come back: " + ev.Failure
		}
	}
	return l
}

// decisionText returns the history line of a decision about a task.
func (r *Reader) decisionText(id model.TaskID, d model.Decision) (l historyLine) {
	var why model.Reason
	of := id
	switch d := d.(type) {
	case model.Launch:
		of, l.Attempt, l.Text = d.Task, d.Attempt, "launched "+r.grantsText(d.Grants, d.Alone)+hostText(d.Host)
	case model.Stop:
		of, l.Attempt, l.Text, why = d.Task, d.Attempt, "is being stopped", d.Reason
	case model.Requeue:
		of, why = d.Task, d.Reason
		l.Text = "goes back to the queue, to get " + d.Need.String()
		switch {
		case d.Alone:
			l.Text = "goes back to the queue, to get GPUs of its own"
		case d.Need == 0:
			l.Text = "goes back to the queue"
		}
	case model.Release:
		of, l.Text = d.Task, "may go on: what it waited for has come"
	case model.GrantChanged:
		of, l.Attempt, l.Text = d.Task, d.Attempt, "its booking changed: "+r.grantsText(d.Grants, false)
	case model.Resize:
		of, l.Attempt, l.Text = d.Task, d.Attempt, "its share of the machine changed"+hostText(d.Host)
	case model.Suspend:
		of, l.Attempt, l.Text, why = d.Task, d.Attempt, "is taken off its GPUs", d.Reason
		if d.Leave {
			l.Text = "its program is asked to leave its GPUs"
		}
	case model.Resume:
		of, l.Attempt, l.Text = d.Task, d.Attempt, "comes back "+r.grantsText(d.Grants, d.Alone)
		if len(d.Grants) > 0 && !slices.ContainsFunc(d.Grants, func(g model.Grant) bool { return slices.Contains(d.From, g.GPU) }) {
			l.Text += ", moved from " + r.c.GPUs.Text(d.From)
		}
	case model.Idle:
		of, l.Attempt, l.Text = d.Task, d.Attempt, "works again"
		if d.Since != 0 {
			what := "does nothing since "
			if d.Unused {
				what = "has not used its GPUs since "
			}
			l.Text = what + d.Since.Time().Local().Format("2006-01-02 15:04")
		}
	case model.GrantExceeded:
		of, l.Text = d.Task, fmt.Sprintf("uses %s on %s; %s was booked when it was launched, %s is now", d.Used, r.c.GPUs.Text([]model.GPUID{d.GPU}), d.Grant, d.Booked)
	case model.Finish:
		of, l.Text, why = d.Task.ID, string(d.Task.Phase), d.Task.Reason
	default:
		return l
	}
	if of != id {
		return historyLine{}
	}
	l.Kind, _, _ = model.EncodeDecision(d)
	if l.Reason = string(why.Code); l.Reason != "" {
		l.public = l.Text + ": " + words.Reason(record.UnquotedReason(why))
		l.Text += ": " + words.Reason(why)
	}
	return l
}

// requestText describes a task's request, or returns "" for a request for one GPU and
// nothing else.
func requestText(q *model.Request) string {
	parts := []string{fmt.Sprintf("on %d GPUs", q.GPUs)}
	switch {
	case q.NoGPU:
		parts[0] = "without a GPU"
	case q.GPUs == 1:
		parts[0] = "on 1 GPU"
	}
	if q.Exclusive {
		parts = append(parts, "shared with nobody")
	}
	if q.Priority != model.Normal {
		parts = append(parts, "priority "+q.Priority.String())
	}
	if n := len(q.After); n > 0 {
		parts = append(parts, fmt.Sprintf("after task %d", q.After[0].Task))
		if n > 1 {
			parts[len(parts)-1] += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if q.Delay > 0 {
		parts = append(parts, "in "+q.Delay.String())
	}
	return ", " + strings.Join(parts, ", ")
}

func estimateText(e *model.Estimate) string {
	from := ""
	if e.Method != "" {
		from = " (" + string(e.Method) + ")"
	}
	switch {
	case e.WholeGPU:
		return "it gets whole GPUs: its memory is not known"
	case e.Memory == 0:
		return "estimated: it needs no GPU memory" + from
	case e.Point != 0 && e.Point != e.Memory:
		return fmt.Sprintf("estimated at %s on each GPU, likeliest %s%s", e.Memory, e.Point, from)
	}
	return fmt.Sprintf("estimated at %s on each GPU%s", e.Memory, from)
}

// taskUpdateText describes the fields of a change that a user sets.
func taskUpdateText(c *model.TaskUpdate) string {
	var parts []string
	add := func(format string, v any) { parts = append(parts, fmt.Sprintf(format, v)) }
	if c.Priority != nil {
		add("priority %s", *c.Priority)
	}
	if c.Retries != nil {
		add("retries %d", *c.Retries)
	}
	if c.TimeLimit != nil {
		add("time limit %s", *c.TimeLimit)
	}
	if c.Slot != nil {
		add("slot %s", *c.Slot)
	}
	if h := c.Host; h != nil {
		add("host memory %s", h.Memory)
		add("processors %g", float64(h.CPUs)/1000)
	}
	if c.GPUs != nil {
		add("GPUs %d", *c.GPUs)
	}
	if c.Exclusive != nil {
		add("exclusive %t", *c.Exclusive)
	}
	if c.Estimate != nil {
		parts = append(parts, estimateText(c.Estimate))
	}
	if c.After != nil {
		add("waits for %d tasks", len(c.After.Tasks))
	}
	return cmp.Or(strings.Join(parts, ", "), "its name or labels")
}

// grantsText describes the GPUs and the memory of grants.
func (r *Reader) grantsText(grants []model.Grant, alone bool) string {
	if len(grants) == 0 {
		return "without a GPU"
	}
	var ids []model.GPUID
	var most units.Bytes
	for _, g := range grants {
		ids, most = append(ids, g.GPU), max(most, g.Memory)
	}
	text := "on " + r.c.GPUs.Text(ids)
	switch {
	case alone:
		return text + ", alone there"
	case len(grants) > 1:
		return fmt.Sprintf("%s with %s booked on each", text, most)
	}
	return fmt.Sprintf("%s with %s booked", text, most)
}

func hostText(h model.HostShare) string {
	text := ""
	if h.Memory > 0 {
		text = fmt.Sprintf("; host memory %s", h.Memory)
	}
	if h.CPUs > 0 {
		text += fmt.Sprintf("; processors %g", float64(h.CPUs)/1000)
	}
	return text
}
