# kseg alone in an image: docker run --rm -v /var/kafka-logs:/data:ro kseg verify /data
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X kseg/cmd.version=${VERSION}" -o /kseg . && mkdir /empty

FROM scratch
COPY --from=build /kseg /kseg
# What is needed of archives that are compressed or on stdin is kept here; mount something larger for large ones.
COPY --from=build --chown=65532:65532 /empty /tmp
# Not root: mount log directories that this user can read, or run with --user.
USER 65532:65532
ENTRYPOINT ["/kseg"]
