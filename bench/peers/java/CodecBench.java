package dohle.bench;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.network.TransferableChannel;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.SendBuilder;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Workload W1 for kafka-clients: its generated classes read and write the samples of `build/bench/codec samples DIR`. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CodecBench {
    @Param({"HeartbeatRequest-4"}) // All come from the command line: -p sample=...
    public String sample;

    private short version;
    private Supplier<ApiMessage> maker;
    private ByteBuffer[] bytes;
    private ApiMessage[] messages;
    private ByteBuffer out;
    private RequestHeader requestHeader;
    private ResponseHeader responseHeader;
    private int next;

    @Setup
    public void read() throws Exception {
        String name = sample.substring(0, sample.lastIndexOf('-'));
        version = Short.parseShort(sample.substring(sample.lastIndexOf('-') + 1));
        boolean request = name.endsWith("Request");
        String api = name.substring(0, name.length() - (request ? "Request" : "Response").length());
        ApiMessageType type = null;
        for (ApiMessageType each : ApiMessageType.values())
            if (each.name.equals(api)) type = each;
        final ApiMessageType found = type;
        maker = request ? found::newRequest : found::newResponse;
        List<ByteBuffer> all = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(Files.newInputStream(Path.of(System.getProperty("samples"), sample)))) {
            for (;;) {
                byte[] one = new byte[in.readInt()];
                in.readFully(one);
                all.add(ByteBuffer.wrap(one));
            }
        } catch (EOFException end) {
            bytes = all.toArray(new ByteBuffer[0]);
        }
        messages = new ApiMessage[bytes.length];
        int largest = 0;
        for (int i = 0; i < bytes.length; i++) {
            messages[i] = maker.get();
            messages[i].read(new ByteBufferAccessor(bytes[i].duplicate()), version);
            largest = Math.max(largest, bytes[i].remaining());
        }
        out = ByteBuffer.allocate(largest);
        for (int i = 0; i < bytes.length; i++) {
            next = i;
            encode();
            out.flip();
            if (!out.equals(bytes[i])) throw new IllegalStateException(sample + " is not written as it was read");
        }
        if (request) requestHeader = new RequestHeader(ApiKeys.forId(type.apiKey()), version, "codec", 7);
        else responseHeader = new ResponseHeader(7, type.responseHeaderVersion(version));
        for (int i = 0; i < bytes.length; i++) {
            next = i;
            Channel sent = new Channel();
            Send send = send();
            while (!send.completed()) send.writeTo(sent);
            ByteBuffer body = ByteBuffer.wrap(sent.bytes.toByteArray());
            body.position(body.limit() - bytes[i].remaining());
            if (!body.equals(bytes[i])) throw new IllegalStateException(sample + " is not sent as it was read");
        }
    }

    @Benchmark
    public ApiMessage decode() {
        ByteBuffer from = bytes[next++ % bytes.length].duplicate();
        ApiMessage message = maker.get();
        message.read(new ByteBufferAccessor(from), version);
        return message;
    }

    @Benchmark
    public int encode() {
        ApiMessage message = messages[next++ % messages.length];
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = message.size(cache, version);
        out.clear();
        message.write(new ByteBufferAccessor(out), cache, version);
        return size;
    }

    /** The frame as the clients and the broker hand it to a socket: the records stay where they are. */
    @Benchmark
    public Send send() {
        ApiMessage message = messages[next++ % messages.length];
        return requestHeader != null ? SendBuilder.buildRequestSend(requestHeader, message)
            : SendBuilder.buildResponseSend(responseHeader, message, version);
    }

    /** A socket that keeps what is written. */
    private static final class Channel implements TransferableChannel {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public int write(ByteBuffer from) {
            byte[] all = new byte[from.remaining()];
            from.get(all);
            bytes.writeBytes(all);
            return all.length;
        }

        @Override
        public long write(ByteBuffer[] from, int offset, int length) {
            long written = 0;
            for (int i = offset; i < offset + length; i++) written += write(from[i]);
            return written;
        }

        @Override
        public long write(ByteBuffer[] from) {
            return write(from, 0, from.length);
        }

        @Override
        public boolean hasPendingWrites() {
            return false;
        }

        @Override
        public long transferFrom(FileChannel file, long position, long count) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public void close() {
        }
    }
}
