package verify

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"

	"kseg/format"
)

// skimMark stands in place of the records of a batch that was looked at as it passed. It is made by chance, so that no
// file holds it. What follows it is the checksum that was there, how many keys there are, and their hashes.
var skimMark = func() (mark [16]byte) {
	_, _ = rand.Read(mark[:]) // never fails
	return mark
}()

const (
	skimmedCount = format.BatchHeaderSize + int64(len(skimMark)) + 4
	skimmedHead  = skimmedCount + 4
)

// Skim looks at the batches of a stream as they pass, as for logdir.Options. Of one in which nothing is found it leaves
// the header, with a checksum that holds for what is left, and hashes of keys: that is all that the order of batches,
// indexes, snapshots and a start ask for.
func Skim(opts Options) func() func(batch []byte) []byte {
	opts.Clock = nil
	w, l := newWorker(&opts, enabled(&opts), nil), &looked{}
	return func() func([]byte) []byte {
		keys := keysSeen{reader: w.reader, hashes: map[uint64]bool{}}
		return func(raw []byte) []byte {
			b, err := format.DecodeBatch(raw, 0)
			if err != nil || b.Legacy() || b.Control() || !b.Plausible() || !b.Valid() {
				return raw
			}
			l.reset()
			w.single(l, &b)
			var hashes []uint64
			if !keys.enough() {
				hashes = keys.batch(&b)
			}
			kept := skimmedHead + 8*int64(len(hashes))
			if len(l.findings)+len(l.notRead) > 0 || b.Size() < kept {
				return raw
			}
			clear(raw[format.BatchHeaderSize:])
			be := binary.BigEndian
			out := append(raw[:format.BatchHeaderSize], skimMark[:]...)
			out = be.AppendUint32(be.AppendUint32(out, b.CRC), uint32(len(hashes)))
			for _, hash := range hashes {
				out = be.AppendUint64(out, hash)
			}
			be.PutUint32(raw[17:], b.ComputeCRC())
			return out
		}
	}
}

// isSkimmed reports whether the records of b were looked at as they passed, and are gone.
func isSkimmed(b *format.Batch) bool {
	return b.Size() >= skimmedHead && bytes.HasPrefix(b.Raw[format.BatchHeaderSize:], skimMark[:])
}

// skimmedKeys are the hashes of the keys of such a batch.
func skimmedKeys(b *format.Batch) (hashes []uint64) {
	be := binary.BigEndian
	for i := range int64(be.Uint32(b.Raw[skimmedCount:])) {
		hashes = append(hashes, be.Uint64(b.Raw[skimmedHead+8*i:]))
	}
	return hashes
}
