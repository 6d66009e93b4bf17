// Stretches of a body that are sent unchanged and that the leak check need not search: they were searched, or are pictures.

/// A stretch in which the search of the parts found nothing, or a picture without metadata.
struct SearchedStretch {
    /// Octets of the received body.
    let range: Range<Int>
    /// The state of the search at its end; nil for a picture, in which nothing is looked for.
    let end: LeakFeeder.State?

    /// Shorter ones are searched twice. So is a stretch for which more than half its size must be remembered: usually this is 1
    /// to 13 KB.
    static let minimumLength = 32_768
}

extension LeakFeeder {
    /// Takes octets, and skips the stretches among them that were already searched.
    ///
    /// Finds all that a search of all octets would find. A mention that begins before a stretch, at any level of base64, ends
    /// within its lead, which is searched after the octets before it. A mention that ends after a stretch is found by resuming
    /// the search at the end of the stretch.
    /// - Parameters:
    ///   - searched: in the order of the body; those that overlap an earlier one are searched.
    ///   - body: the body of the stretches. Octets count as searched only where they are the same ones in memory.
    /// - Returns: whether something was found before the last skipped stretch; `finish` reports the rest.
    func feed(_ octets: ArraySlice<UInt8>, passingOver searched: [SearchedStretch], of body: [UInt8]) -> Bool {
        octets.withUnsafeBufferPointer { octets in
            var position = 0
            if !searched.isEmpty, let offset = Self.offset(of: octets, in: body) {
                for stretch in searched {
                    let start = stretch.range.lowerBound - offset
                    let end = stretch.range.upperBound - offset
                    guard start >= position, end <= octets.count else { continue }
                    if let state = stretch.end {
                        guard start + Self.lead < end else { continue }
                        feed(UnsafeBufferPointer(rebasing: octets[position..<(start + Self.lead)]))
                        if finish() { return true }
                        resume(state)
                    } else {
                        feed(UnsafeBufferPointer(rebasing: octets[position..<start]))
                        if finish() { return true }
                    }
                    position = end
                }
            }
            feed(UnsafeBufferPointer(rebasing: octets[position...]))
            return false
        }
    }

    /// Where octets begin in a body whose memory they share; nil for others.
    private static func offset(of octets: UnsafeBufferPointer<UInt8>, in body: [UInt8]) -> Int? {
        body.withUnsafeBufferPointer { body in
            guard let first = octets.baseAddress, let start = body.baseAddress, first >= start,
                first + octets.count <= start + body.count
            else {
                return nil
            }
            return first - start
        }
    }
}
