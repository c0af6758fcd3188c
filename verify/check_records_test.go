package verify

import "testing"

// The bounds of 2001-09-09 and 2100-01-01 in each unit; what lies between them is milliseconds.
func TestOddUnit(t *testing.T) {
	for timestamp, want := range map[int64]string{
		-1: "", 0: "", 999_999_999: "", 1_000_000_000: "seconds", 4_102_444_799: "seconds", 4_102_444_800: "",
		1_700_000_000_000: "", 999_999_999_999_999: "", 1_000_000_000_000_000: "microseconds",
		4_102_444_799_999_999: "microseconds", 4_102_444_800_000_000: "", 999_999_999_999_999_999: "",
		1_000_000_000_000_000_000: "nanoseconds", 1_700_000_000_000_000_000: "nanoseconds", 1<<63 - 1: "nanoseconds",
	} {
		if got := oddUnit(timestamp); got != want {
			t.Errorf("%d: %q, want %q", timestamp, got, want)
		}
	}
}
