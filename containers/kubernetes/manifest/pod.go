package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"carma/containers"
)

// Names in the cluster.
const (
	// ManagedBy is the label with the program that made an object: [Owner] if carma did.
	ManagedBy = "app.kubernetes.io/managed-by"
	// Gate is the scheduling gate of a pod that is not started.
	Gate = "carma.dev/start"
	// Finalizer keeps an ended pod until carma removes it.
	Finalizer = "carma.dev/attempt"
	// LabelsKey is the annotation with all labels of a container, as JSON: a cluster's
	// labels are limited in length and characters.
	LabelsKey = "carma.dev/labels"
	// FaultKey is the annotation with the reason why a pod can never start.
	FaultKey = "carma.dev/fault"
	// StopKey is the annotation of a pod that carma ended: [Stopped] or [Removed].
	StopKey = "carma.dev/stop"
	// BytesKey is the annotation with the bytes of memory to allocate on each GPU.
	BytesKey = "carma.dev/gpu-memory"

	// GPUTaint is the taint by which clusters keep other pods off nodes with GPUs.
	GPUTaint = "nvidia.com/gpu"

	// ContainerName is the name of the container of a pod that carma made.
	ContainerName = "task"
	// GPURef is the name by which a pod refers to its claim.
	GPURef = "gpu"
	// VisibleGPUs is the environment variable with the UUIDs of a program's GPUs.
	VisibleGPUs = "NVIDIA_VISIBLE_DEVICES"
)

// Builder makes the pods of containers.
type Builder struct {
	ns        *Namespaces
	stopGrace time.Duration // time between stop signal and kill, if a spec names none
	hostPaths []string      // folders of the nodes that may be mounted
}

// NewBuilder returns a builder of the pods of a daemon. stopGrace is the time between a
// pod's stop signal and its kill if its spec names none; hostPaths are the folders of the
// nodes that may be mounted, with all that is below them.
func NewBuilder(ns *Namespaces, stopGrace time.Duration, hostPaths []string) *Builder {
	return &Builder{ns: ns, stopGrace: stopGrace, hostPaths: hostPaths}
}

// Pod returns the pod of a container. The pod is pinned to node, or may run on any node if node
// is empty.
func (m *Builder) Pod(spec containers.Spec, node string) (*corev1.Pod, error) {
	if errs := validation.IsDNS1123Subdomain(spec.Name); len(errs) > 0 {
		return nil, fmt.Errorf("%w: name %q: %s", containers.ErrInvalid, spec.Name, errs[0])
	}
	if err := refused(spec); err != nil {
		return nil, err
	}
	all, err := json.Marshal(spec.AllLabels())
	if err != nil {
		return nil, err
	}
	no, grace := false, int64(max(time.Second, cmp.Or(spec.StopGrace, m.stopGrace)).Seconds())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.ns.Home(spec.Namespace, "").Namespace,
			Name:      spec.Name, Finalizers: []string{Finalizer}, Labels: m.ns.ClusterLabels(spec.AllLabels()),
			Annotations: map[string]string{LabelsKey: string(all)},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			// The kubelet kills the pod this time after the stop signal.
			TerminationGracePeriodSeconds: &grace,
			SchedulingGates:               []corev1.PodSchedulingGate{{Name: Gate}},
			// A task gets no service account of the cluster, and no addresses of its services.
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			Hostname:                     spec.Hostname,
			Affinity:                     onNode(node),
			Tolerations:                  []corev1.Toleration{{Key: GPUTaint, Operator: corev1.TolerationOpExists}},
		},
	}
	if spec.Account != "" {
		// A user who may make pods in a namespace may also use its service accounts.
		pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = spec.Account, nil
	}
	if spec.Init {
		// The pause process starts as process 1 and reaps orphans.
		pod.Spec.ShareProcessNamespace = &spec.Init
	}
	c := corev1.Container{
		Name: ContainerName, Image: spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: literal(spec.Entrypoint), Args: literal(spec.Command), WorkingDir: spec.WorkDir, Env: environment(spec),
		Resources: limits(spec),
		TTY:       spec.TTY, Stdin: spec.TTY || spec.Interactive,
		// Without a terminal, the program reads the end of its input when the session that sends the
		// input ends.
		StdinOnce:                spec.Interactive && !spec.TTY,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if err := secure(spec, pod, &c); err != nil {
		pod.Annotations[FaultKey] = err.Error()
	}
	if len(spec.GPUs) > 0 {
		pod.Annotations[BytesKey] = strconv.FormatInt(spec.GPUMemory, 10)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: GPURef, ResourceClaimName: &spec.Name}}
		c.Resources.Claims = []corev1.ResourceClaim{{Name: GPURef}}
	}
	if err := m.mount(spec, pod, &c); err != nil {
		return nil, err
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod, nil
}

// Selectable reports whether a label is valid in Kubernetes.
func Selectable(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

// LabelsOf returns the labels with which a container was made.
func LabelsOf(pod *corev1.Pod) map[string]string {
	var all map[string]string
	if json.Unmarshal([]byte(pod.Annotations[LabelsKey]), &all) != nil {
		return nil
	}
	return all
}

// onNode pins a pod to a node by its name. The scheduler then looks at that node
// only.
func onNode(node string) *corev1.Affinity {
	if node == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}}}
}

// literal escapes words so that a cluster does not replace $(NAME) in them.
func literal(words []string) []string {
	out := slices.Clone(words)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$", "$$")
	}
	return out
}

// environment returns the environment of the spec and the GPUs. Of variables with the same
// name, the last one counts.
func environment(spec containers.Spec) []corev1.EnvVar {
	gpus := "void"
	if len(spec.GPUs) > 0 {
		gpus = strings.Join(spec.GPUs, ",")
	}
	out := []corev1.EnvVar{}
	if spec.TTY {
		out = append(out, corev1.EnvVar{Name: "TERM", Value: "xterm"}) // docker run -t does the same
	}
	for _, kv := range append(slices.Clone(spec.Env), VisibleGPUs+"="+gpus) {
		name, value, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(e corev1.EnvVar) bool { return e.Name == name })
		out = append(out, corev1.EnvVar{Name: name, Value: literal([]string{value})[0]})
	}
	return out
}

// limits returns the limits of memory and processors. A cluster limits the number of processes
// only for all pods of a node alike.
func limits(spec containers.Spec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	if spec.Memory > 0 {
		r.Limits[corev1.ResourceMemory] = *resource.NewQuantity(spec.Memory, resource.BinarySI)
	}
	if spec.CPUs > 0 {
		r.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(spec.CPUs*1000), resource.DecimalSI)
	}
	if spec.CPUWeight > 0 {
		weight := spec.CPUWeight
		if spec.CPUs > 0 {
			weight = min(weight, int64(spec.CPUs*1000))
		}
		r.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(weight, resource.DecimalSI)
	}
	return r
}

// Owner is the field manager of the fields that carma sets.
const Owner = "carma"

// NoDevices is the reason why a pod gets no device nodes.
const NoDevices = "a pod gets devices by claims only"

// refused returns an error if a cluster cannot do a part of a spec other than its options.
func refused(spec containers.Spec) error {
	for _, r := range []struct {
		asked bool
		why   string
	}{
		{spec.CPUSet != "", "processors by number: a node's kubelet chooses them (its static CPU manager)"},
		{spec.Attach == containers.AttachNodes && len(spec.Nodes) > 0, NoDevices},
		{spec.Sandbox != nil, "a container without network (carma probe): a pod always has one; run the probe on a server"},
		{spec.Hosted != nil, "containers of a suite with helpers: write them as Deployments and Services"},
	} {
		if r.asked {
			return fmt.Errorf("%w: %s", containers.ErrUnsupported, r.why)
		}
	}
	return nil
}
