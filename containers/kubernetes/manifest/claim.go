package manifest

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
)

// pinTo returns a CEL expression that is true for only one device.
func pinTo(driver, uuid string) string {
	return fmt.Sprintf("device.attributes[%q].%s == %q", driver, UUIDAttribute, uuid)
}

// PinnedTo returns the UUID in a request's expression, if pinTo made the expression, or empty.
func PinnedTo(r *resourcev1.DeviceRequest) string {
	if r.Exactly == nil || len(r.Exactly.Selectors) != 1 || r.Exactly.Selectors[0].CEL == nil {
		return ""
	}
	_, quoted, ok := strings.Cut(r.Exactly.Selectors[0].CEL.Expression, "]."+UUIDAttribute+" == ")
	uuid, err := strconv.Unquote(quoted)
	if !ok || err != nil {
		return ""
	}
	return uuid
}

// Place locates a GPU: a device in a slice that its driver publishes.
type Place struct {
	Node, Driver, Class, Pool, Device string
	Shared                            bool // claims may share it by its memory
}

// UUIDAttribute is the attribute of a device that contains its UUID, in the slices of NVIDIA's
// driver and of carma's simulated GPUs.
const UUIDAttribute = "uuid"

// NewClaim returns the claim of a pod. It requests the spec's GPU memory on each GPU, or the
// whole GPU if that is 0 bytes or the GPU is not shared. The claim is deleted with the pod.
func NewClaim(spec containers.Spec, at []Place, pod *corev1.Pod) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: spec.Name, Labels: pod.Labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		// The scheduler would otherwise add it by another request before it allocates. The cluster
		// removes it from a deleted claim, whether the claim was allocated or not.
		Finalizers: []string{resourcev1.Finalizer},
	}}
	for i, uuid := range spec.GPUs {
		r := &resourcev1.ExactDeviceRequest{
			DeviceClassName: at[i].Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: pinTo(at[i].Driver, uuid),
			}}},
		}
		if spec.GPUMemory > 0 && at[i].Shared {
			r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
				Memory: *resource.NewQuantity(spec.GPUMemory, resource.BinarySI),
			}}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: requestName(i), Exactly: r})
	}
	return claim
}

func requestName(i int) string { return "gpu-" + strconv.Itoa(i) }

// Consumed returns the memory in bytes that a claim has of a shared device, or -1 if the device
// is not shared.
func Consumed(capacity map[resourcev1.QualifiedName]resource.Quantity) int64 {
	q, ok := capacity[Memory]
	if !ok {
		return -1
	}
	return q.Value()
}

// Memory is the capacity by which several claims may share a device.
const Memory = "memory"
