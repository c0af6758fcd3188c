package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes: 1048576, 64K, 256MiB, 1g. Powers of 1024 throughout, as in Kafka's own settings;
// KB means KiB. The error is a sentence.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTkmgtiIbB")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text[len(digits):]), "b"), "i")
	shift, known := map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size: give bytes, or a number with KiB, MiB or GiB after it", text)
	}
	return n << shift, nil
}
