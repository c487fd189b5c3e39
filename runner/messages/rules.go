package messages

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/deviceaccess"
	"carma/runner/notify"
	"carma/runner/record"
	"carma/runner/verify"
)

// relaunched holds the reasons for requeueing of which a message is sent. Other reasons
// are a normal part of sharing GPUs (slots, moves), or repeat until an engine works.
var relaunched = map[model.ReasonCode]bool{
	model.ReasonOOM: true, model.ReasonOOMSuspected: true, model.ReasonOOMBlameless: true, model.ReasonHostAgain: true, model.ReasonHostOveruse: true, model.ReasonOveruse: true,
	model.ReasonRetry: true, model.ReasonInfrastructure: true, model.ReasonEvicted: true, model.ReasonMPSFault: true,
}

// phaseEnds maps the final phases to the events of messages.
var phaseEnds = map[model.Phase]string{model.Succeeded: api.NotifyFinished, model.Failed: api.NotifyFailed, model.Cancelled: api.NotifyStopped}

// of makes the messages of one event. Equal journals give equal ids.
func (m *Messenger) of(ctx context.Context, p verify.Step, faults map[model.GPUID]string) (list []notify.Owned) {
	switch ev := p.Event.(type) {
	case model.Sampled:
		list = m.ofFaults(p, ev, faults)
	case model.GPUsFound:
		list = m.ofMissing(ctx, p, faults)
	case model.DevicesChecked:
		if ev.State != "" {
			list = m.ofDevices(list, ev)
		}
	case model.Started:
		if ev.Attempt == 1 && m.begins(ev) {
			list = m.add(list, ev.Task, api.NotifyStarted, model.Reason{}, nil)
		}
	}
	for _, d := range p.Decided {
		switch d := d.(type) {
		case model.Finish:
			list = m.add(list, d.Task.ID, phaseEnds[d.Task.Phase], d.Task.Reason, &d.Task)
		case model.Requeue:
			if relaunched[d.Reason.Code] {
				list = m.add(list, d.Task, api.NotifyRecovered, d.Reason, nil)
			}
		case model.Suspend:
			list = m.add(list, d.Task, api.NotifySuspended, d.Reason, nil)
		case model.Resume:
			list = m.add(list, d.Task, api.NotifyResumed, model.Reason{}, nil)
		case model.Idle:
			if d.Since != 0 {
				list = m.add(list, d.Task, api.NotifyIdle, model.Reason{}, nil)
				m.sayIdle(list, p, d)
			}
		}
	}
	at := model.EventTime(p.Event)
	for i := range list {
		list[i].Time = at.Time()
		list[i].ID = fmt.Sprintf("%s-%d-%d-%s", m.Instance, p.Seq, i, strconv.FormatInt(int64(at), 36))
	}
	return list
}

// ofDevices adds the message that a task can no longer open its GPUs.
func (m *Messenger) ofDevices(list []notify.Owned, ev model.DevicesChecked) []notify.Owned {
	list = m.add(list, ev.Task, api.NotifyDevice, model.Reason{}, nil)
	if n := len(list); n > 0 {
		list[n-1].Reason = deviceaccess.Text(&model.DeviceLoss{State: ev.State, GPUs: ev.GPUs}, func(ids []model.GPUID) string { return words.GPUs(ids, m.Index) }) + "; running programs go on, programs that open them again fail; the task is started again without blame if it fails or has no process on a GPU"
		list[n-1].Public = list[n-1].Reason
	}
	return list
}

// begins reports whether a Started event is the first of its task's first attempt. A
// daemon that adopts the attempt reports its start again.
func (m *Messenger) begins(ev model.Started) bool {
	rec, err := m.Find(ev.Task.String())
	return err == nil && len(rec.Task.Attempts) > 0 && rec.Task.Attempts[0].Started >= ev.At
}

func (m *Messenger) fault(_ verify.Step, id model.GPUID, text string) notify.Owned {
	index := m.Index(id)
	return notify.Owned{UID: -1, Public: text, Message: notify.Message{
		Event: api.NotifyFault, Name: fmt.Sprintf("GPU %d (%s)", index, id), Reason: text, GPUs: []int{index},
	}}
}

// add adds the message of a task's event. end is the task's last state, or nil if the
// task has not ended.
func (m *Messenger) add(list []notify.Owned, id model.TaskID, event string, why model.Reason, end *model.Task) []notify.Owned {
	rec, err := m.Find(id.String())
	if err != nil || event == "" {
		return list // the task was removed meanwhile, and its owner knows that
	}
	t := cmp.Or(end, &rec.Task)
	o := notify.Owned{UID: rec.UID, Wants: rec.Submit.Notify, Message: notify.Message{
		Event: event, Task: int64(id), Name: rec.Name, User: rec.User, Group: rec.Group,
	}}
	if why.Code != "" {
		o.Reason, o.Public = words.Reason(why), words.Reason(record.UnquotedReason(why))
	}
	if rec.Submit.Visibility == access.VisibilityOpen {
		o.Public = o.Reason
	}
	if n := len(t.Attempts); n > 0 {
		for _, g := range t.Attempts[n-1].Grants {
			o.GPUs = append(o.GPUs, m.Index(g.GPU))
		}
	}
	if end != nil {
		m.addEnd(&o, end)
		if n := len(t.Attempts); n > 0 && o.Reason == "" && rec.Ends[t.Attempts[n-1].N] != nil {
			o.Reason = rec.Ends[t.Attempts[n-1].N].Remark
			o.Public = o.Reason
		}
	}
	return append(list, o)
}

// addEnd adds how a task ended: its exit code, its time and, after a failure, the last
// lines of its output.
func (m *Messenger) addEnd(o *notify.Owned, t *model.Task) {
	n := len(t.Attempts)
	if n == 0 {
		return
	}
	last := &t.Attempts[n-1]
	o.Attempts = n
	if last.Started != 0 {
		o.Seconds = last.Ended.Sub(last.Started).Seconds()
	}
	if t.Phase == model.Succeeded || last.Started != 0 && t.Code != 0 {
		o.ExitCode = new(t.Code)
	}
	if t.Phase != model.Failed || last.Started == 0 {
		return
	}
	lines, err := m.Logs.Tail(int64(t.ID), last.N, lastLines)
	if err != nil {
		return
	}
	var raw [][]byte
	for _, l := range lines {
		raw = append(raw, l.Text)
	}
	o.Output = notify.Lines(raw)
}

// lastLines is the number of output lines read for a message; the message has the last
// non-empty ones.
const lastLines = 30

// sayIdle adds to the last message for how long the task has done nothing.
func (m *Messenger) sayIdle(list []notify.Owned, p verify.Step, d model.Idle) {
	rec, err := m.Find(d.Task.String())
	if err != nil || len(list) == 0 {
		return
	}
	at := model.EventTime(p.Event)
	o := &list[len(list)-1]
	o.Reason = rec.IdleText(d, at)
	o.Public = o.Reason
}
