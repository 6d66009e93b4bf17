// Searches the passing body of a forward for what would bypass the relay, and holds the body while this may still be found.

import InternetMessage
import MailCrypto

/// One body. Not thread-safe.
final class ForwardBody {
    /// Why a body must be rewritten.
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
    /// The rewriting that is needed, as far as known.
    private(set) var need: Need?
    /// Whether the message came before, and must be held this time.
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

    /// Hash of what stays the same when a message is sent again.
    private static func mark(of header: HeaderSection, account: AccountNumber) -> [UInt8] {
        var text = Array("\(account.rawValue)\n".utf8)
        for field in header.fields where field.isNamed("Message-ID") || field.isNamed("Date") || field.isNamed("Subject") {
            text += field.bytes + [0x0A]
        }
        return SHA256.hash(text)
    }

    func update(_ chunk: UnsafeRawBufferPointer) {
        count += chunk.count
        // In steps, as hundreds of messages may arrive at once: what was found in one step is released before the next.
        for start in stride(from: 0, to: chunk.count, by: TextWalker.stretch) {
            look(walker.feed(UnsafeRawBufferPointer(rebasing: chunk[start..<min(chunk.count, start + TextWalker.stretch)])))
        }
        hold(chunk)
    }

    /// Ends the body. Called once.
    /// - Throws: where the body cannot be read to its end.
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

    /// Works on the whole body where it must be rewritten.
    /// - Returns: nil where no change is needed, or where only links need one and the body is larger than can ever be held.
    /// - Throws: `452 4.3.1` where there was no room to hold it: the sender repeats it, and it is held then.
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
            // Each block is released once it is appended, so that memory holds the body once and not twice.
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
