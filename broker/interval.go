package broker

import (
	"math"

	"kseg/format"
	"kseg/logdir"
)

const (
	defaultInterval = 4096
	inferFrom       = 3 // segments with an index are looked at
)

// InferInterval finds an index.interval.bytes with which a broker would have made the indexes that are there: Kafka's
// default if that can be, else the largest power of two. Without a hint it is the default.
func InferInterval(p *logdir.Partition) int64 {
	var all format.IntervalInference
	n, bytes := 0, int64(0)
	for _, s := range p.Segments {
		if n == inferFrom {
			break
		}
		if s.Index == nil || s.Index.Size < offsetWidth || s.Log.Size == 0 || bytes+s.Log.Size > format.MostInferred ||
			s.Next == nil && n > 0 {
			continue
		}
		n, bytes = n+1, bytes+s.Log.Size
		_ = s.Index.View(func(index []byte) error {
			return s.Log.View(func(log []byte) error {
				one := format.NewSegmentInterval(format.NewOffsetIndex(index, s.Base))
				var b format.Batch
				for pos := int64(0); b.Decode(log, pos) == nil; pos = b.End() {
					one.Add(b.Ref())
				}
				all.Add(one)
				return nil
			})
		})
	}
	least, most, ok := all.Range()
	if !ok || most == math.MaxInt64 {
		return defaultInterval
	}
	return likelyInterval(least, most)
}

// likelyInterval is what somebody would have chosen of a range.
func likelyInterval(least, most int64) int64 {
	if least <= defaultInterval && defaultInterval <= most {
		return defaultInterval
	}
	power := int64(1)
	for power*2 <= most {
		power *= 2
	}
	if power >= least {
		return power
	}
	return most
}
