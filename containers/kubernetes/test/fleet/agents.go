//go:build kubernetes

package fleet

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers/kubernetes"
	"carma/containers/kubernetes/cluster"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// Agents reports the samples of each node's GPUs in a namespace. It reports all nodes once
// before it returns. Then it reports each node once per interval every, one node after the
// other, until the test ends. The activity of a task differs in each report.
func (f *Fleet) Agents(t *testing.T, kubeconfig, namespace string, nodes int, every time.Duration) {
	t.Helper()
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: kubeconfig, Namespace: namespace})
	must(err)
	t.Cleanup(func() { _ = d.Close() })
	tell := func(i int) {
		var r cluster.Report
		for g := range 8 {
			s := gpu.Sample{UUID: GPU(8*i + g), Metrics: gpu.MetricsUtilization}
			if p, ok := f.runs.Load(s.UUID); ok {
				s.Processes = []gpu.Process{p.(gpu.Process)}
				s.Used, s.SMACT = s.Processes[0].Used, 0.3+0.4*rand.Float64()
			}
			r.GPUs = append(r.GPUs, s)
		}
		text, err := r.Text()
		must(err)
		if _, err := d.Tell(t.Context(), nodeName(i), text, nil); err != nil && t.Context().Err() == nil {
			f.failed.Do(func() { t.Errorf("tell of %s: %v", nodeName(i), err) })
		}
	}
	var all sync.WaitGroup
	const parts = 16
	for part := range parts {
		all.Go(func() {
			for i := part; i < nodes; i += parts {
				tell(i)
			}
		})
	}
	all.Wait()
	if every <= 0 {
		return
	}
	go func() {
		tick := time.NewTicker(every / time.Duration(nodes))
		defer tick.Stop()
		for i := 0; ; i = (i + 1) % nodes {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
				tell(i)
			}
		}
	}()
}

// occupy records the process on a GPU for a pod of carma.
func (f *Fleet) occupy(pod *corev1.Pod, over bool) {
	env := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	uuid := env["NVIDIA_VISIBLE_DEVICES"]
	task, err := strconv.ParseInt(env["CARMA_TASK"], 10, 64)
	attempt, none := strconv.Atoi(env["CARMA_ATTEMPT"])
	switch {
	case err != nil || none != nil:
	case over:
		f.runs.Delete(uuid)
	default:
		f.runs.Store(uuid, gpu.Process{Task: model.TaskID(task), Attempt: attempt, Used: 8 << 30})
	}
}
