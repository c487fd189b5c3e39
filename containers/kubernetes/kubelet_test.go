package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/containers/kubernetes/manifest"
	"carma/containers/option"
)

// graceUnit represents one second of a pod's grace.
const graceUnit = 100 * time.Millisecond

// sync does for a pod the next work of the scheduler and the kubelet. The caller holds c.mu.
func (c *cluster) sync(pod *corev1.Pod) {
	switch {
	case manifest.Gated(pod):
	case pod.DeletionTimestamp != nil:
		if id := c.ran[pod.UID]; id != "" {
			grace := time.Duration(*pod.DeletionGracePeriodSeconds) * graceUnit
			go func() {
				_ = c.engine.Signal(context.Background(), id)
				time.Sleep(grace)
				_ = c.engine.Kill(context.Background(), id)
			}()
		} else if s := manifest.Status(pod); s != nil && s.State.Terminated == nil {
			c.over(pod, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"})
		} else if s == nil && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
			pod.Status.Phase = corev1.PodFailed // the pod ends without having run
			c.tell("MODIFIED", pod)
		}
	case pod.Spec.NodeName == "" && c.unscheduled:
		c.tell("MODIFIED", pod)
	case pod.Spec.NodeName == "":
		pod.Spec.NodeName = "node-1"
		if why := c.allocate(pod); why != "" {
			pod.Spec.NodeName = ""
			c.condition(pod, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why})
			return
		}
		if c.idle {
			c.tell("MODIFIED", pod)
			return
		}
		uid := pod.UID
		go func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if now := c.pods[podKey(pod)]; now == pod && pod.UID == uid && pod.DeletionTimestamp == nil {
				c.launch(pod)
			}
		}()
	}
}

func (c *cluster) condition(pod *corev1.Pod, condition corev1.PodCondition) {
	pod.Status.Conditions = []corev1.PodCondition{condition}
	c.tell("MODIFIED", pod)
}

// allocate allocates a pod's claim, or returns the reason why it cannot.
func (c *cluster) allocate(pod *corev1.Pod) string {
	if len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	claim := c.claims[key(pod.Namespace, *pod.Spec.ResourceClaims[0].ResourceClaimName)]
	if claim == nil {
		return "0/1 nodes are available: claim not found"
	}
	result := &resourcev1.AllocationResult{}
	for _, r := range claim.Spec.Devices.Requests {
		var want resource.Quantity
		if r.Exactly.Capacity != nil {
			want = r.Exactly.Capacity.Requests["memory"]
		}
		found := false
		for _, s := range c.slices {
			for _, dev := range s.Spec.Devices {
				uuid := *dev.Attributes[manifest.UUIDAttribute].StringValue
				if !strings.HasSuffix(r.Exactly.Selectors[0].CEL.Expression, fmt.Sprintf("== %q", uuid)) || !inClass(r.Exactly.DeviceClassName, s.Spec.Driver, &dev) {
					continue
				}
				total := dev.Capacity["memory"].Value
				if c.booked(dev.Name)+want.Value() > total.Value() {
					return "0/1 nodes are available: 1 cannot allocate all claims"
				}
				found = true
				result.Devices.Results = append(result.Devices.Results, resourcev1.DeviceRequestAllocationResult{
					Request: r.Name, Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: dev.Name,
					ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": want},
				})
			}
		}
		if !found {
			return "0/1 nodes are available: no such device"
		}
	}
	claim.Status.Allocation = result
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	c.touch()
	return ""
}

// inClass reports whether a device is in a device class. NVIDIA has a class for each kind of
// device; the class of another driver has the driver's name.
func inClass(class, driver string, dev *resourcev1.Device) bool {
	if driver != "gpu.nvidia.com" {
		return class == driver
	}
	kind := "gpu"
	if k := dev.Attributes["type"].StringValue; k != nil {
		kind = *k
	}
	return class == map[string]string{"gpu": "gpu.nvidia.com", "mig": "mig.nvidia.com", "vfio": "vfio.gpu.nvidia.com"}[kind]
}

// booked returns the bytes of a device's memory that are allocated to claims.
func (c *cluster) booked(device string) (bytes int64) {
	for _, claim := range c.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if q := r.ConsumedCapacity["memory"]; r.Device == device {
				bytes += q.Value()
			}
		}
	}
	return bytes
}

// launch runs a pod on the engine. The caller holds c.mu; launch unlocks it while the engine
// works.
func (c *cluster) launch(pod *corev1.Pod) {
	k := pod.Spec.Containers[0]
	if !c.images[k.Image] {
		c.set(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ErrImagePull", Message: `failed to pull and unpack image "` + k.Image + `": failed to resolve reference: not found`,
		}})
		return
	}
	spec := containers.Spec{
		Name: string(pod.UID), Image: k.Image, Entrypoint: unescaped(k.Command), Command: unescaped(k.Args),
		ContainerOptions: containers.ContainerOptions{
			WorkDir: k.WorkingDir, Init: pod.Spec.ShareProcessNamespace != nil, Hostname: pod.Spec.Hostname,
			TTY: k.TTY, Interactive: k.Stdin && !k.TTY,
		},
	}
	for _, e := range k.Env {
		spec.Env = append(spec.Env, e.Name+"="+unescaped([]string{e.Value})[0])
		if e.Name == manifest.VisibleGPUs && e.Value != "void" {
			spec.GPUs = strings.Split(e.Value, ",")
		}
	}
	if u := k.SecurityContext.RunAsUser; u != nil {
		spec.User = fmt.Sprint(*u)
		if g := k.SecurityContext.RunAsGroup; g != nil {
			spec.User += fmt.Sprintf(":%d", *g)
		}
	}
	if spec.User == "" { // a kubelet accepts only a numeric user of an image
		spec.User, _, _ = strings.Cut(containerstest.ToolUser, ":")
		spec.User += ":0"
	}
	for i, v := range pod.Spec.Volumes {
		if at := k.VolumeMounts[i]; v.EmptyDir != nil && at.MountPath == "/dev/shm" {
			spec.ShmSize = v.EmptyDir.SizeLimit.Value()
		} else if v.EmptyDir != nil {
			spec.Tmpfs = append(spec.Tmpfs, option.Tmpfs{Target: at.MountPath, Size: v.EmptyDir.SizeLimit.Value(), ReadOnly: at.ReadOnly}.String())
		}
		if v.HostPath != nil {
			spec.Mounts = append(spec.Mounts, containers.Mount{Source: v.HostPath.Path, Target: k.VolumeMounts[i].MountPath, ReadOnly: k.VolumeMounts[i].ReadOnly})
		}
	}
	slices.Reverse(spec.Tmpfs) // the fake's program searches the first mount that covers a path
	if s := pod.Spec.SecurityContext; s != nil {
		for _, g := range s.SupplementalGroups {
			spec.Groups = append(spec.Groups, fmt.Sprint(g))
		}
	}
	ctx := context.Background()
	id, err := c.engine.Create(ctx, spec)
	if err == nil {
		err = c.engine.Start(ctx, id)
	}
	if err != nil {
		c.over(pod, &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error()})
		return
	}
	c.ran[pod.UID] = id
	began := metav1.Now().Rfc3339Copy()
	runs := func() {
		pod.Status.Phase = corev1.PodRunning
		c.set(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}})
	}
	if c.told == nil {
		runs()
	} else {
		go func() {
			<-c.told
			c.mu.Lock()
			defer c.mu.Unlock()
			runs()
		}()
	}
	go func() {
		exit, err := c.engine.Wait(ctx, id)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil && c.pods[podKey(pod)] == pod {
			reason := map[bool]string{true: "Completed", false: "Error"}[exit.Code == 0]
			if exit.OOMKilled {
				reason = "OOMKilled"
			}
			c.over(pod, &corev1.ContainerStateTerminated{ExitCode: int32(exit.Code), Reason: reason, StartedAt: began, FinishedAt: metav1.Now().Rfc3339Copy()})
		}
	}()
}

func (c *cluster) over(pod *corev1.Pod, how *corev1.ContainerStateTerminated) {
	pod.Status.Phase = corev1.PodSucceeded
	if how.ExitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	c.set(pod, corev1.ContainerState{Terminated: how})
	c.gone(pod)
}

func (c *cluster) set(pod *corev1.Pod, state corev1.ContainerState) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ProgramIn(pod), State: state}}
	c.tell("MODIFIED", pod)
}

// stream writes the log of a container of the engine.
func (c *cluster) stream(w http.ResponseWriter, r *http.Request, id string, since time.Time, follow bool) {
	within := false
	_ = c.engine.Logs(r.Context(), id, time.Time{}, follow, func(at time.Time, _ containers.Stream, text []byte, partial bool) {
		if at.Before(since) {
			return
		}
		if !within {
			fmt.Fprintf(w, "%s ", at.Format(time.RFC3339Nano))
		}
		_, _ = w.Write(text)
		if within = partial; !within {
			_, _ = w.Write([]byte("\n"))
		}
		if follow {
			w.(http.Flusher).Flush()
		}
	})
}
