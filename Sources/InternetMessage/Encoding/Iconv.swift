// Safe use of glibc's iconv: a handle lives for one call and is always closed.
import Glibc

enum Iconv {
    /// Octets of output room per conversion step.
    private static let chunk = 4096

    /// Opens a conversion, runs `body`, closes it. Nil if glibc does not support the conversion.
    private static func withHandle<T>(to: String, from: String, _ body: (iconv_t) -> T) -> T? {
        guard let handle = iconv_open(to, from), handle != iconv_t(bitPattern: -1) else {
            return nil
        }
        defer { iconv_close(handle) }
        return body(handle)
    }

    /// Decodes to text; malformed input becomes U+FFFD. Nil if the charset is unknown.
    static func decode(_ bytes: UnsafeBufferPointer<UInt8>, from name: String) -> Charset.Decoded? {
        // RFC 2781 section 4.3: UTF-16 without byte order mark is big-endian. glibc would use the
        // machine's order.
        var name = name
        if name == "UTF-16" {
            let hasMark =
                bytes.count >= 2
                && ((bytes[0] == 0xFE && bytes[1] == 0xFF)
                    || (bytes[0] == 0xFF && bytes[1] == 0xFE))
            if !hasMark { name = "UTF-16BE" }
        }
        return withHandle(to: "UTF-8", from: name) { handle in
            var output = [UInt8]()
            output.reserveCapacity(bytes.count)
            var isLossless = true
            convert(bytes, handle, into: &output) { output in
                isLossless = false
                output.append(contentsOf: [0xEF, 0xBF, 0xBD])
                return true
            }
            return Charset.Decoded(
                text: String(decoding: output, as: UTF8.self), isLossless: isLossless)
        }
    }

    /// Encodes well-formed UTF-8; nil if the charset is unknown or lacks a character.
    static func encode(_ text: UnsafeBufferPointer<UInt8>, to name: String) -> [UInt8]? {
        let encoded = withHandle(to: name, from: "UTF-8") { handle -> [UInt8]? in
            var output = [UInt8]()
            output.reserveCapacity(text.count)
            let isComplete = convert(text, handle, into: &output) { _ in false }
            return isComplete ? output : nil
        }
        return encoded ?? nil
    }

    /// Converts all input and resets the shift state at the end. At an octet that does not convert,
    /// `onError` may return a replacement for it, and the octet is skipped. Otherwise it returns
    /// false, which ends the conversion. Returns whether the end was reached.
    @discardableResult
    private static func convert(
        _ input: UnsafeBufferPointer<UInt8>, _ handle: iconv_t, into output: inout [UInt8],
        onError: (inout [UInt8]) -> Bool
    ) -> Bool {
        var source = input.baseAddress.map {
            UnsafeMutablePointer(mutating: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        var sourceLeft = input.count
        var isFlushing = sourceLeft == 0
        while true {
            var error: Int32 = 0
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: chunk) { room in
                var target = room.baseAddress
                var targetLeft = room.count
                let result =
                    isFlushing
                    ? iconv(handle, nil, nil, &target, &targetLeft)
                    : iconv(handle, &source, &sourceLeft, &target, &targetLeft)
                if result == -1 { error = errno }
                for index in 0..<(room.count - targetLeft) {
                    output.append(UInt8(bitPattern: room[index]))
                }
            }
            switch error {
            case 0 where isFlushing: return true
            case 0: isFlushing = true
            case E2BIG: continue
            case EILSEQ where sourceLeft > 0 && !isFlushing:
                guard onError(&output) else { return false }
                source = source.map { $0 + 1 }
                sourceLeft -= 1
                if sourceLeft == 0 { isFlushing = true }
            default:  // EINVAL: the input ends within a character.
                guard !isFlushing, onError(&output) else { return false }
                isFlushing = true
            }
        }
    }
}
