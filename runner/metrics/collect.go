package metrics

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// maxTasks bounds the tasks on a page.
const maxTasks = 1000

// figure is a metric of the state. gpu and task select the first labels.
type figure struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

var (
	gpuLabels  = []string{"gpu", "UUID", "device", "modelName", "Hostname"}
	taskLabels = []string{"task", "name", "user"}
	descs      []*prometheus.Desc // for pages without names
	named      []*prometheus.Desc // in addition for pages with names
)

func gauge(name, help string, labels ...string) figure {
	f := figure{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
	descs = append(descs, f.Desc)
	return f
}

func counter(name, help string, labels ...string) figure {
	f := gauge(name, help, labels...)
	f.kind = prometheus.CounterValue
	return f
}

func ofGPU(name, help string, more ...string) figure {
	return gauge(name, help, append(append([]string{}, gpuLabels...), more...)...)
}

func ofTask(name, help string, more ...string) figure {
	f := figure{prometheus.NewDesc(name, help, append(append([]string{}, taskLabels...), more...), nil), prometheus.GaugeValue}
	named = append(named, f.Desc)
	return f
}

func onGPU(name, help string) figure { return ofTask(name, help, gpuLabels...) }

func ofUser(name, help string) figure {
	f := figure{prometheus.NewDesc(name, help, []string{"user"}, nil), prometheus.GaugeValue}
	named = append(named, f.Desc)
	return f
}

func counts(f figure) figure { f.kind = prometheus.CounterValue; return f }

// The figures of GPUs.
var (
	gpuTotal     = ofGPU("carma_gpu_memory_capacity_bytes", "Memory of the GPU.")
	gpuReserved  = ofGPU("carma_gpu_memory_reserved_bytes", "Memory booked for the tasks on the GPU.")
	gpuUsed      = ofGPU("carma_gpu_memory_used_bytes", "Memory in use, that of other processes included.")
	gpuForeign   = ofGPU("carma_gpu_memory_foreign_bytes", "Memory in use by processes that are not carma's.")
	gpuHeadroom  = ofGPU("carma_gpu_memory_headroom_bytes", "Memory that is never booked.")
	gpuSMACT     = ofGPU("carma_gpu_sm_activity_ratio", "SM activity, 0 to 1, over 30 s; an upper bound where carma_gpu_activity_coarse is 1.")
	gpuSMOCC     = ofGPU("carma_gpu_sm_occupancy_ratio", "SM occupancy, 0 to 1, over 30 s.")
	gpuDRAMA     = ofGPU("carma_gpu_dram_activity_ratio", "DRAM activity, 0 to 1, over 30 s.")
	gpuCoarse    = ofGPU("carma_gpu_activity_coarse", "1 if the activity is the share of time in which any kernel ran, an upper bound.")
	gpuPower     = ofGPU("carma_gpu_power_watts", "Draw of the GPU.")
	gpuTemp      = ofGPU("carma_gpu_temperature_celsius", "Temperature of the GPU; absent where it is not known.")
	gpuEnergy    = counts(ofGPU("carma_gpu_energy_joules_total", "Energy of the GPU since the daemon's start."))
	gpuECC       = counts(ofGPU("carma_gpu_ecc_errors_total", "Uncorrectable memory errors since the driver was loaded."))
	gpuFault     = ofGPU("carma_gpu_fault", "1 while the GPU gets no tasks because of a fault; carma gpus says which.")
	gpuDrained   = ofGPU("carma_gpu_drained", "1 while somebody has drained the GPU.")
	gpuKept      = ofGPU("carma_gpu_kept_free", "1 while the GPU is kept free for a task that waits.")
	gpuTasks     = ofGPU("carma_gpu_tasks", "Tasks that have the GPU.")
	gpuSuspended = ofGPU("carma_gpu_suspended_tasks", "Suspended tasks that had the GPU.")
	gpuInfo      = ofGPU("carma_gpu_info", "How tasks share the GPU; always 1.", "sharing")
)

// The figures of tasks that have GPUs, and of users.
var (
	taskGrant    = onGPU("carma_task_memory_reserved_bytes", "Memory booked for the task on this GPU.")
	taskUsed     = onGPU("carma_task_memory_used_bytes", "Memory that the task uses on this GPU.")
	taskPeak     = onGPU("carma_task_memory_peak_bytes", "Highest memory seen in use by the task on this GPU.")
	taskEstimate = ofTask("carma_task_memory_estimate_bytes", "Memory estimated for the task on each GPU; absent if it gets whole GPUs.")
	taskProgress = ofTask("carma_task_progress_ratio", "Share of its work that is done, 0 to 1, as the output of an open task tells; absent where it does not, and for private tasks.")
	taskSlowdown = ofTask("carma_task_slowdown_ratio", "How many times as long as alone it takes beside its neighbours; absent if it has none.")
	taskAttempts = ofTask("carma_task_attempts", "Attempts so far, the present one included.")
	taskStarted  = ofTask("carma_task_started_timestamp_seconds", "When the present attempt started.")
	taskIdle     = ofTask("carma_task_idle", "1 while it runs and does nothing.")
	taskEnergy   = counts(ofTask("carma_task_energy_joules_total", "Its share of the energy of its GPUs, over all attempts."))
	taskInfo     = ofTask("carma_task_info", "The phase of the task; always 1.", "phase")

	userRunning = ofUser("carma_user_running_tasks", "Tasks of the user that have GPUs.")
	userWaiting = ofUser("carma_user_waiting_tasks", "Tasks of the user in the queues.")
	userGPUs    = ofUser("carma_user_gpus", "GPUs that the user's tasks have, counted for each task.")
	userMemory  = ofUser("carma_user_memory_reserved_bytes", "Memory booked for the user's tasks.")
	userSeconds = counts(ofUser("carma_user_gpu_seconds_total", "Seconds for which the user's tasks have run, once for each of their GPUs. Goes on over restarts; time in which no daemon ran does not count."))
	userEnergy  = counts(ofUser("carma_user_energy_joules_total", "Energy of the user's tasks. Goes on over restarts."))
	userUsage   = ofUser("carma_user_fair_usage_gpu_seconds", "GPU-seconds as fair share counts them: those of some time ago count less.")
	userShare   = ofUser("carma_user_fair_share_ratio", "Part of the GPUs, 0 to 1, that the user has a right to among those who have tasks.")
)

// The figures of the server.
var (
	queueTasks  = gauge("carma_queue_tasks", "Tasks in the queues, by priority and the code of the reason why they wait.", "priority", "reason")
	queueOldest = gauge("carma_queue_oldest_wait_seconds", "Longest time that a task of the priority has waited in the queues up to now.", "priority")
	heldTasks   = gauge("carma_held_tasks", "Unfinished tasks that are in no queue: held, or waiting for other tasks.")
	awayTasks   = gauge("carma_suspended_tasks", "Suspended tasks.")
	running     = gauge("carma_running_tasks", "Tasks that have GPUs, or have been started without one.")
	userCount   = gauge("carma_users", "Users with unfinished tasks.")
	idleEnergy  = counter("carma_idle_energy_joules_total", "Energy of GPUs without tasks. Goes on over restarts.")
	taskTotalJ  = counter("carma_tasks_energy_joules_total", "Energy of all tasks. Goes on over restarts.")
	taskSeconds = counter("carma_tasks_gpu_seconds_total", "Seconds for which tasks have run, once for each of their GPUs. Goes on over restarts.")
	engineUp    = gauge("carma_engine_up", "1 while the container engine answers and can start containers.")
	ready       = gauge("carma_ready", "1 while tasks that are submitted can be kept and started.")
	paused      = gauge("carma_paused", "1 while somebody has paused launching.")
	draining    = gauge("carma_draining", "1 while the daemon starts nothing more and waits for its last task.")
	troubles    = gauge("carma_troubles", "What keeps tasks from starting, by scope: daemon, engine or gpu.", "scope")
	journalSize = gauge("carma_journal_size_bytes", "Size of the journal's files.")
	journalFull = gauge("carma_journal_full", "1 while the journal cannot be written, or has only its spare room.")
	snapshotAt  = gauge("carma_journal_snapshot_timestamp_seconds", "When the newest snapshot was taken, by the daemon's time.")
	daemonTime  = gauge("carma_time_seconds", "The daemon's time since 1970; on a simulated server not the clock's.")
)

// collector converts a state to figures.
type collector struct {
	pages *Pages
	names Names
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
	if c.names {
		for _, d := range named {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	s, err := c.pages.source(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(ready.Desc, err)
		return
	}
	o := output{ch, map[string][]string{}}
	for i := range s.GPUs {
		o.gpu(&s.GPUs[i], c.pages.host)
	}
	o.server(&s)
	o.queue(s.Queue)
	if !c.names {
		return
	}
	for i := range s.Tasks[:min(maxTasks, len(s.Tasks))] {
		o.task(&s.Tasks[i])
	}
	for _, u := range s.Users {
		o.user(u)
	}
}

// output writes figures. gpus are the labels of each GPU, by UUID.
type output struct {
	ch   chan<- prometheus.Metric
	gpus map[string][]string
}

func (o *output) put(f figure, v float64, labels ...string) {
	for i, l := range labels { // the client panics at invalid labels
		if !utf8.ValidString(l) {
			labels = slices.Clone(labels)
			labels[i] = strings.ToValidUTF8(l, "?")
		}
	}
	o.ch <- prometheus.MustNewConstMetric(f.Desc, f.kind, v, labels...)
}

func (o *output) gpu(g *GPU, host string) {
	l := []string{strconv.Itoa(g.Index), g.UUID, "nvidia" + strconv.Itoa(g.Index), g.Model, host}
	o.gpus[g.UUID] = l
	o.put(gpuTotal, float64(g.Total), l...)
	o.put(gpuReserved, float64(g.Reserved), l...)
	o.put(gpuUsed, float64(g.Used), l...)
	o.put(gpuForeign, float64(g.Foreign), l...)
	o.put(gpuHeadroom, float64(g.Headroom), l...)
	if g.Known {
		o.put(gpuSMACT, g.SMACT, l...)
		o.put(gpuSMOCC, g.SMOCC, l...)
		o.put(gpuDRAMA, g.DRAMA, l...)
		o.put(gpuCoarse, flag(g.Coarse), l...)
	}
	o.put(gpuPower, g.PowerW, l...)
	if g.TemperatureC > 0 {
		o.put(gpuTemp, g.TemperatureC, l...)
	}
	o.put(gpuEnergy, g.EnergyJ, l...)
	o.put(gpuECC, float64(g.ECCErrors), l...)
	o.put(gpuFault, flag(g.Fault), l...)
	o.put(gpuDrained, flag(g.Drained), l...)
	o.put(gpuKept, flag(g.HeldFor), l...)
	o.put(gpuTasks, float64(g.Tasks), l...)
	o.put(gpuSuspended, float64(g.Suspended), l...)
	o.put(gpuInfo, 1, append(append([]string{}, l...), g.Sharing)...)
}

func (o *output) task(t *Task) {
	l := []string{strconv.FormatInt(t.ID, 10), t.Name, t.User}
	for _, p := range t.On {
		gpu, known := o.gpus[p.UUID]
		if !known {
			continue
		}
		both := append(append([]string{}, l...), gpu...)
		o.put(taskGrant, float64(p.Grant), both...)
		o.put(taskUsed, float64(p.Used), both...)
		o.put(taskPeak, float64(p.Peak), both...)
	}
	if t.Estimate > 0 {
		o.put(taskEstimate, float64(t.Estimate), l...)
	}
	if t.Progress >= 0 {
		o.put(taskProgress, t.Progress, l...)
	}
	if t.Slowdown > 0 {
		o.put(taskSlowdown, t.Slowdown, l...)
	}
	o.put(taskAttempts, float64(t.Attempts), l...)
	if !t.Started.IsZero() {
		o.put(taskStarted, seconds(t.Started), l...)
	}
	o.put(taskIdle, flag(t.Idle), l...)
	o.put(taskEnergy, t.EnergyJ, l...)
	o.put(taskInfo, 1, append(append([]string{}, l...), t.Phase)...)
}

func (o *output) user(u User) {
	o.put(userRunning, float64(u.Running), u.Name)
	o.put(userWaiting, float64(u.Waiting), u.Name)
	o.put(userGPUs, float64(u.GPUs), u.Name)
	o.put(userMemory, float64(u.Memory), u.Name)
	o.put(userSeconds, u.GPUSeconds, u.Name)
	o.put(userEnergy, u.EnergyJ, u.Name)
	o.put(userUsage, u.Usage, u.Name)
	o.put(userShare, u.Share, u.Name)
}
