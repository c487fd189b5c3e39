package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"carma/containers"
	"carma/containers/option"
)

// Names in the cluster.
const (
	managedBy = "app.kubernetes.io/managed-by"
	// gate keeps a pod that is not started. holder keeps an ended one until it is
	// removed here.
	gate   = "carma.dev/start"
	holder = "carma.dev/attempt"
	// labelsKey is the annotation with all labels of a container, as JSON: a cluster's
	// labels are limited in length and characters.
	labelsKey = "carma.dev/labels"
	// faultKey is the annotation that says why a pod can never start; stopKey the
	// one that says that carma ended it.
	faultKey = "carma.dev/fault"
	stopKey  = "carma.dev/stop"
	// bytesKey is the annotation with the memory to allocate on each GPU.
	bytesKey = "carma.dev/gpu-memory"

	// tolerated is the taint by which clusters keep other pods off nodes with GPUs.
	tolerated = "nvidia.com/gpu"

	containerName = "task"
	claimName     = "gpu"
	visible       = "NVIDIA_VISIBLE_DEVICES"
)

// manifests describes the pods of containers.
type manifests struct {
	ns        namespaces
	stopGrace time.Duration // the default, see [Options]
	hostPaths []string      // as in [Options]
}

// makePod describes the pod of a container on node, or on any node if empty.
func (m *manifests) makePod(spec containers.Spec, node string) (*corev1.Pod, error) {
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
			Namespace: m.ns.home(spec.Namespace, "").Namespace,
			Name:      spec.Name, Finalizers: []string{holder}, Labels: m.ns.clusterLabels(spec.AllLabels()),
			Annotations: map[string]string{labelsKey: string(all)},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			// The kubelet's limit from the stop signal on.
			TerminationGracePeriodSeconds: &grace,
			SchedulingGates:               []corev1.PodSchedulingGate{{Name: gate}},
			// A task gets no account of the cluster, and no address of its services.
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			Hostname:                     spec.Hostname,
			Affinity:                     onNode(node),
			Tolerations:                  []corev1.Toleration{{Key: tolerated, Operator: corev1.TolerationOpExists}},
		},
	}
	if spec.Account != "" {
		// A user who may make pods in a namespace may give them its accounts.
		pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = spec.Account, nil
	}
	if spec.Init {
		// The pod's own first process starts the program and reaps orphans.
		pod.Spec.ShareProcessNamespace = &spec.Init
	}
	c := corev1.Container{
		Name: containerName, Image: spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: literal(spec.Entrypoint), Args: literal(spec.Command), WorkingDir: spec.WorkDir, Env: environment(spec),
		Resources: limits(spec),
		TTY:       spec.TTY, Stdin: spec.TTY || spec.Interactive,
		// Without a terminal, the program reads the end of its input when the session
		// that gives it ends.
		StdinOnce:                spec.Interactive && !spec.TTY,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if err := secure(spec, pod, &c); err != nil {
		pod.Annotations[faultKey] = err.Error()
	}
	if len(spec.GPUs) > 0 {
		pod.Annotations[bytesKey] = strconv.FormatInt(spec.GPUMemory, 10)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claimName, ResourceClaimName: &spec.Name}}
		c.Resources.Claims = []corev1.ResourceClaim{{Name: claimName}}
	}
	if err := m.mount(spec, pod, &c); err != nil {
		return nil, err
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod, nil
}

// clusterLabels returns the labels that a cluster accepts as labels.
func (n *namespaces) clusterLabels(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if selectable(k, v) {
			out[k] = v
		}
	}
	out[managedBy], out[daemonKey] = ours, n.own
	return out
}

func selectable(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

// labelsOf are the labels that a container was made with.
func labelsOf(pod *corev1.Pod) map[string]string {
	var all map[string]string
	if json.Unmarshal([]byte(pod.Annotations[labelsKey]), &all) != nil {
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

// pinned returns an affinity that allows only node, if was allowed it.
func pinned(was *corev1.Affinity, node string) *corev1.Affinity {
	only := onNode(node)
	if was == nil {
		return only
	}
	out := was.DeepCopy()
	if out.NodeAffinity == nil || out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		preferred := out.NodeAffinity
		if out.NodeAffinity = only.NodeAffinity; preferred != nil {
			out.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred.PreferredDuringSchedulingIgnoredDuringExecution
		}
		return out
	}
	terms := out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms { // one of them must hold
		terms[i].MatchFields = append(terms[i].MatchFields, only.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields...)
	}
	return out
}

// literal keeps a cluster from replacing $(NAME) in words.
func literal(words []string) []string {
	out := slices.Clone(words)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$", "$$")
	}
	return out
}

// environment is the spec's, where the last of equal names counts, with the GPUs.
func environment(spec containers.Spec) []corev1.EnvVar {
	gpus := "void"
	if len(spec.GPUs) > 0 {
		gpus = strings.Join(spec.GPUs, ",")
	}
	out := []corev1.EnvVar{}
	if spec.TTY {
		out = append(out, corev1.EnvVar{Name: "TERM", Value: "xterm"}) // as docker run -t does
	}
	for _, kv := range append(slices.Clone(spec.Env), visible+"="+gpus) {
		name, value, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(e corev1.EnvVar) bool { return e.Name == name })
		out = append(out, corev1.EnvVar{Name: name, Value: literal([]string{value})[0]})
	}
	return out
}

// limits are of memory and processors. A cluster limits the number of processes
// for all pods of a node alike.
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

// mount adds the volumes: folders of the node, in memory, and /dev/shm.
func (m *manifests) mount(spec containers.Spec, pod *corev1.Pod, c *corev1.Container) error {
	add := func(source corev1.VolumeSource, target string, readOnly bool) {
		name := "v" + strconv.Itoa(len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: target, ReadOnly: readOnly})
	}
	memory := func(bytes int64) corev1.VolumeSource {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(bytes, resource.BinarySI),
		}}
	}
	for _, mount := range spec.Mounts {
		if !path.IsAbs(mount.Target) || path.Clean(mount.Target) == "/" {
			return fmt.Errorf("%w: mount target %q: it must be an absolute path and not /", containers.ErrInvalid, mount.Target)
		}
		kind, err := m.folder(mount.Source)
		if err != nil {
			return err
		}
		add(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: mount.Source, Type: &kind}}, mount.Target, mount.ReadOnly)
	}
	// A folder comes before its subfolders.
	tmpfs := option.Each(spec.Tmpfs, option.ParseTmpfs)
	slices.SortFunc(tmpfs, func(a, b option.Tmpfs) int { return strings.Compare(a.Target, b.Target) })
	for _, t := range tmpfs {
		add(memory(t.Size), t.Target, t.ReadOnly)
	}
	if spec.ShmSize > 0 {
		add(memory(spec.ShmSize), "/dev/shm", false)
	}
	return nil
}
