package attempt

import (
	"context"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/deviceaccess"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/loop"
	"carma/runner/record"
)

// DevicesChanged records that an attempt lost its devices, or has them back.
func (d *Deps) DevicesChanged(key gpu.AttemptKey, now deviceaccess.Result) {
	ev := model.DevicesChecked{At: d.Clock.Now(), Task: key.Task, Attempt: key.Attempt}
	line := d.Log.Info()
	if now.State.Lost() {
		ev.State, ev.GPUs = model.DeviceState(now.State), d.lostGPUs(key, now)
		line = d.Log.Warn().Strs("nodes", now.Lost)
	}
	text := deviceaccess.Text(&model.DeviceLoss{State: ev.State, GPUs: ev.GPUs}, d.GPUs.Text)
	line.Int64("task", int64(key.Task)).Int("attempt", key.Attempt).Msg(text)
	d.Consoles.Say(key.Task, text)
	d.Loop.Post(loop.Fact(ev))
}

// lostGPUs returns the GPUs of an attempt that have lost their devices.
func (d *Deps) lostGPUs(key gpu.AttemptKey, now deviceaccess.Result) []model.GPUID {
	rec, _ := d.Records.Get(key.Task)
	if rec == nil || rec.Task.Alive() == nil {
		return nil
	}
	all := make([]model.GPUID, 0, 1)
	for _, g := range rec.Task.Alive().Grants {
		all = append(all, g.GPU)
	}
	return now.LostGPUs(all, func(id model.GPUID) []string { return d.Attachment.Nodes(containers.AttachCDI, []string{string(id)}) })
}

// watchDevices watches the devices of an attempt, until stop is called, and ends the
// attempt if it has lost them and does not use them.
func (a *Attempt) watchDevices(ctx context.Context, id string) (stop func()) {
	rec, _ := a.deps.Records.Get(a.launch.Task)
	lost, forget := a.deps.Access.Add(a.key(), a.uuids(), recordedDevices(rec, a.launch.Attempt), a.resumed, id, a.containerName())
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-ctx.Done():
		case <-lost:
			a.endWithoutDevices(ctx, id)
		}
	}()
	return func() {
		cancel()
		<-over
		forget()
	}
}

// endWithoutDevices stops an attempt by its stop signal and, after the grace, kills it.
func (a *Attempt) endWithoutDevices(ctx context.Context, id string) {
	if a.stopRequested() {
		return
	}
	a.exit.deviceLost.Store(true)
	a.deps.Log.Warn().Int64("task", int64(a.launch.Task)).Int("attempt", a.launch.Attempt).Msg("the task cannot open its GPUs and has no process on them; it is stopped, and started again without blame")
	short, cancel := context.WithTimeout(ctx, signalLimit)
	err := a.deps.Driver.Signal(short, id)
	cancel()
	if err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.deps.Settings.Grace(a.rec)):
		}
	}
	_ = a.kill(ctx, id)
}

// recordedDevices returns the state of an attempt's devices in its record.
func recordedDevices(rec *record.Record, attempt int) deviceaccess.Result {
	if rec == nil || rec.Task.Alive() == nil || rec.Task.Alive().N != attempt || rec.Task.Alive().Devices == nil {
		return deviceaccess.Result{State: devices.Unknown}
	}
	l := rec.Task.Alive().Devices
	return deviceaccess.Result{State: devices.State(l.State), At: l.Since.Time()}
}

// deviceEnding returns the end of an attempt that carma has ended because it lost its
// devices and had no process on them, as a fault of the infrastructure.
func (c *classifier) deviceEnding(end ending) ending {
	if c.stopRequested() || end.fault != nil || !c.deviceLost.Load() {
		return end
	}
	end.class, end.message = model.ExitInfrastructure, c.lossText(c.deps.Access.State(c.key()))+"; and it had no process on it"
	return end
}

// lossText returns a text with the GPUs of the attempt that a check of its devices found lost.
func (c *classifier) lossText(now deviceaccess.Result) string {
	return deviceaccess.Text(&model.DeviceLoss{State: model.DeviceState(now.State), GPUs: c.deps.lostGPUs(c.key(), now)}, c.deps.GPUs.Text)
}
