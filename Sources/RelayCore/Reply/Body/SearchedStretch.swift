// Stretches of a body that were searched before they go on as they came: the leak check need not search them a second time.

/// A stretch in which the search of the parts found nothing.
struct SearchedStretch {
    /// Octets of the body that came in.
    let range: Range<Int>
    /// How the search was at its end.
    let end: LeakFeeder.State

    /// Shorter ones are searched twice, and so is where what must be remembered is more than half of what is searched: as a rule
    /// it is 1 to 13 KB.
    static let minimumLength = 32_768
}

extension LeakFeeder {
    /// Takes octets, and passes over the stretches among them that were searched already.
    ///
    /// Nothing escapes that a search of all octets would find. A mention that begins before a stretch, at whatever level of
    /// base64, ends within its lead, which is searched behind what is before it. One that ends behind a stretch is found by going
    /// on from where the search of the stretch stood.
    /// - Parameters:
    ///   - searched: in the order of the body; those that overlap one before are searched.
    ///   - body: that the stretches are of. Octets count as searched only where they are the very same ones in memory.
    /// - Returns: whether something was found before the last stretch that was passed over; `finish` says the rest.
    func feed(_ octets: ArraySlice<UInt8>, passingOver searched: [SearchedStretch], of body: [UInt8]) -> Bool {
        octets.withUnsafeBufferPointer { octets in
            var position = 0
            if octets.count >= SearchedStretch.minimumLength, let offset = Self.offset(of: octets, in: body) {
                for stretch in searched {
                    let start = stretch.range.lowerBound - offset
                    let end = stretch.range.upperBound - offset
                    guard start >= position, end <= octets.count, start + Self.lead < end else { continue }
                    feed(UnsafeBufferPointer(rebasing: octets[position..<(start + Self.lead)]))
                    if finish() { return true }
                    resume(stretch.end)
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
