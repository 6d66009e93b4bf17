// Searches the body of a forward, as it arrives, for anything that would bypass the relay. Keeps
// the body while it may still need rewriting.

import InternetMessage
import MailCrypto

/// One body. Not thread-safe.
final class ForwardBody {
    /// The reason why a body must be rewritten.
    enum Need { case links, calendar }

    private var walker: TextWalker
    private let memory: ForwardMemory
    private let mark: () -> [UInt8]
    private let now: Int64
    /// Chunks of the body in order; nil once they are released.
    private var blocks: [[UInt8]]? = []
    private var taken = 0
    private var takenUndecided = 0
    private(set) var count = 0
    /// The rewriting that the body needs, as far as known.
    private(set) var need: Need?
    /// Whether the message was refused before for lack of memory, and its body must now be kept.
    private let isExpected: Bool

    /// - Parameter now: seconds since 1970.
    init(header: HeaderSection, account: AccountNumber, memory: ForwardMemory, now: Int64) {
        walker = TextWalker(header: header) { PartKind.isCalendar($0) || PartKind.isShown($0) }
        self.memory = memory
        self.now = now
        let mark = { Self.mark(of: header, account: account) }
        self.mark = mark
        isExpected = memory.isExpected(mark(), now: now)
    }

    deinit { memory.give(back: taken, undecided: takenUndecided) }

    /// Hash of the parts that stay the same when a message is sent again.
    private static func mark(of header: HeaderSection, account: AccountNumber) -> [UInt8] {
        var text = Array("\(account.rawValue)\n".utf8)
        for field in header.fields
        where field.isNamed("Message-ID") || field.isNamed("Date") || field.isNamed("Subject") {
            text += field.bytes + [0x0A]
        }
        return SHA256.hash(text)
    }

    func update(_ chunk: UnsafeRawBufferPointer) {
        count += chunk.count
        // Works in steps, as hundreds of messages may arrive at once. The results of one step are
        // released before the next.
        for start in stride(from: 0, to: chunk.count, by: TextWalker.stretch) {
            look(
                walker.feed(
                    UnsafeRawBufferPointer(
                        rebasing: chunk[start..<min(chunk.count, start + TextWalker.stretch)])))
        }
        hold(chunk)
    }

    /// Ends the body. Call it once.
    /// - Throws: if the body cannot be read to its end.
    func finish() throws(Refusal) {
        look(walker.finish())
        switch walker.stop {
        case .longHeader: throw .malformedBody("the header section of a part is too long")
        case .longDelimiter: throw .malformedBody("a delimiter line is too long")
        case nil: break
        }
        if walker.defects.contains(.tooDeep) { throw .malformedBody("parts are nested too deep") }
        if walker.defects.contains(.tooManyParts) { throw .malformedBody("too many parts") }
    }

    private func look(_ stretches: [TextStretch]) {
        guard need != .calendar else { return }
        for stretch in stretches where !stretch.isLoose {
            if PartKind.isCalendar(stretch.part) {
                need = .calendar
            } else if need == nil, PartKind.isShown(stretch.part), MailtoLinks.occur(in: stretch) {
                need = .links
            }
        }
    }

    private func hold(_ chunk: UnsafeRawBufferPointer) {
        guard blocks != nil, !chunk.isEmpty else { return }
        let isNeeded = need != nil || isExpected
        guard memory.take(chunk.count, size: count, isNeeded: isNeeded) else { return letGo() }
        taken += chunk.count
        if !isNeeded { takenUndecided += chunk.count }
        blocks?.append(Array(chunk))
    }

    private func letGo() {
        blocks = nil
        memory.give(back: taken, undecided: takenUndecided)
        taken = 0
        takenUndecided = 0
    }

    /// Runs `work` on the whole body if the body must be rewritten.
    /// - Returns: nil if no change is needed, or if only links need one and the body is larger than
    ///   the memory allows.
    /// - Throws: `452 4.3.1` if there was no memory to keep it. The sender repeats the message, and
    ///   its body is then kept.
    func rewrite<Result>(_ work: ([UInt8]) throws(Refusal) -> Result) throws(Refusal) -> Result? {
        guard let need else { return nil }
        guard let blocks else {
            guard count <= memory.largest else {
                if need == .calendar { throw .messageTooLarge(memory.largest) }
                return nil
            }
            memory.expect(mark(), now: now)
            throw .forwardMemory
        }
        self.blocks = []
        return try memory.work(on: count) { () throws(Refusal) in
            // Each block is released once it is appended, so that memory contains the body only
            // once.
            var blocks = blocks
            var whole = blocks.count == 1 ? blocks.removeFirst() : []
            whole.reserveCapacity(count)
            for index in blocks.indices {
                whole += blocks[index]
                blocks[index] = []
            }
            return try work(whole)
        }
    }
}
