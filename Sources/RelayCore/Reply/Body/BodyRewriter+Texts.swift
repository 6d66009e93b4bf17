// The leaves of a reply's body: its texts and calendars.

import InternetMessage
import LeakSearch

extension BodyRewriter {
    // MARK: Leaves

    func rewriteText(
        _ part: MIMEPart, in work: inout Work, _ title: PartTitle
    ) throws(Refusal) -> Result {
        let raw = work.bytes[part.bodyRange]
        guard let sent = part.transferEncoding.decode(raw) else {
            return work.place == .body
                ? try lookInto(part, in: &work, title) : removed(part, in: &work)
        }
        let joined = TextBehind.joined(sent, charset: part.contentType.charset)
        let decoded = joined ?? sent
        charge(decoded.bytes.count)
        // An archive that is declared as text is searched like any other.
        if !isCounting, Archive(decoded.bytes) != nil,
            files.search.finds(in: raw, part.transferEncoding)
        {
            try refuse(part, title)
        }
        var reading = TextCoding.read(decoded, part: part, place: work.place, isNeutral: isNeutral)
        if let answer = calendarAnswer(part, reading.utf8, in: work) {
            work.notes.hasAnswer = true
            reading = TextCoding.Reading(utf8: answer, stretches: Stretches(.program))
            var result = written(
                TextCoding.replaced(by: answer, decoded, part: part), part, reading, in: &work)
            // The relay wrote it. Its addresses are the correspondents', and its ids are unchanged.
            let octets = result.map.end
            result.map = StretchMap()
            result.map.append(octets, .made)
            return result
        }
        if !isCounting, hasNameInBlocks(reading, decoded) {
            try refuse(part, title, "uuencoded block")
        }
        let blocks = ArmouredBlocks(
            decoded.bytes, isMarkup: PartKind.syntax(part.contentType) == .markup,
            in: reading.stretches)
        if blocks.isBroken { throw signed(part, title, "a block of PGP without its end") }
        if blocks.isEncrypted { throw .encryptedReply }
        let outcome = TextCoding.rewrite(
            decoded, part: part, place: work.place, &reading, with: text)
        switch outcome {
        case .unchanged where joined != nil:
            return written(
                .changed(Array(decoded.raw), charset: nil, encoding: nil), part, reading, in: &work)
        case .unchanged, .changed:
            return written(outcome, part, reading, in: &work)
        case .impossible(let why):
            guard !reading.stretches.isTyped else { throw refusal(part, title, why) }
            return try cut(part, reading, title, why, in: &work)
        case .opaque:
            return work.place == .body
                ? try lookInto(part, in: &work, title) : removed(part, in: &work)
        }
    }

    /// The outgoing form of a text.
    func written(
        _ outcome: TextCoding.Outcome, _ part: MIMEPart, _ reading: TextCoding.Reading,
        in work: inout Work
    ) -> Result {
        var result = unchanged(
            part, TextCoding.content(of: part, in: work.bytes[part.bodyRange], reading))
        if case .changed(let bytes, let charset, let encoding) = outcome {
            let content = TextCoding.content(
                of: part, in: bytes[...], reading, charset: charset, encoding: encoding)
            result = Result(
                pieces: [bytes[...]], transferEncoding: encoding,
                map: StretchMap(bytes.count, content))
            if let charset {
                var type = part.contentType
                type.parameters["charset"] = charset
                result.contentType = type
            }
        }
        if reading.stretches.standings.contains(where: { !$0.isTyped }) {
            work.notes.hasNeutral = true
        }
        return result
    }

    /// Whether a uuencoded block that the user sends contains a name.
    private func hasNameInBlocks(_ reading: TextCoding.Reading, _ decoded: DecodedText) -> Bool {
        if reading.stretches.isTyped { return files.search.findsInBlocks(of: decoded.bytes) }
        var isFound = false
        reading.stretches.forEach(upTo: reading.utf8.count) { range, standing in
            if standing.isTyped, !isFound {
                isFound = files.search.findsInBlocks(of: Array(reading.utf8[range]))
            }
        }
        return isFound
    }

    /// The replacement for a text of the team's or a program's that cannot be written again.
    private func removed(_ part: MIMEPart, in work: inout Work) -> Result {
        let mark = NeutralMark.quotation + [0x0D, 0x0A]
        work.notes.hasRemoved = true
        var type = part.contentType
        if !type.matches("text") { type = .plainText }
        type.parameters["charset"] = "utf-8"
        var map = StretchMap()
        map.append(mark.count, .made)
        return Result(pieces: [mark[...]], contentType: type, transferEncoding: .sevenBit, map: map)
    }

    /// The same within typed text: removes each stretch that is not typed.
    private func cut(
        _ part: MIMEPart, _ reading: TextCoding.Reading, _ title: PartTitle, _ why: String,
        in work: inout Work
    ) throws(Refusal) -> Result {
        var rest: [UInt8] = []
        var hasTyped = false
        var kinds: [StretchMap.Stretch] = []
        reading.stretches.forEach(upTo: reading.utf8.count) { range, standing in
            if standing.isTyped {
                hasTyped = true
                rest += reading.utf8[range]
                kinds.append(range.count, .typed)
            } else {
                rest += NeutralMark.quotation + [0x0D, 0x0A]
                kinds.append(NeutralMark.quotation.count + 2, .made)
            }
        }
        guard hasTyped else { return removed(part, in: &work) }
        let syntax = PartKind.syntax(part.contentType)
        guard UnknownCharset.isLikeASCII(rest),
            text.edits(rest, syntax: syntax, place: .typed).isEmpty,
            UnknownCharset.readings(of: rest).allSatisfy({
                text.edits($0, syntax: syntax, place: .typed).isEmpty
            }),
            let encoded = part.transferEncoding.encode(rest)
        else { throw refusal(part, title, why) }
        work.notes.hasRemoved = true
        let body = TextCoding.ending(like: work.bytes[part.bodyRange], encoded)
        let form = StretchMap.Form(encoding: part.transferEncoding, isMarkup: syntax == .markup)
        let content = StretchMap.Content.text(form, TextCoding.fitted(kinds, to: body[...], form))
        return Result(pieces: [body[...]], map: StretchMap(body.count, content))
    }

    // MARK: Calendars

    /// Whether a part of the message, not in an attached one, is the answer to an invitation. Then
    /// a program wrote the message.
    func holdsCalendarAnswer(_ part: MIMEPart, in bytes: [UInt8]) -> Bool {
        if part.contentType.matches("message") { return false }
        if part.isComposite { return part.children.contains { holdsCalendarAnswer($0, in: bytes) } }
        guard isCalendar(part), let decoded = part.transferEncoding.decode(bytes[part.bodyRange])
        else { return false }
        budget.charge(decoded.bytes.count * Self.formWork)
        let reading = TextCoding.read(decoded, part: part, place: .typed)
        return CalendarAnswer(reading.utf8, isReverse: text.names.isReverse) != nil
    }

    private func isCalendar(_ part: MIMEPart) -> Bool {
        PartKind.isContentLines(part) && !PartKind.isVCard(part.contentType)
    }

    /// The rewritten answer to an invitation of the team's; nil for any other text.
    private func calendarAnswer(_ part: MIMEPart, _ utf8: [UInt8], in work: Work) -> [UInt8]? {
        guard !work.isAttached, isCalendar(part),
            let answer = CalendarAnswer(utf8, isReverse: text.names.isReverse)
        else {
            return nil
        }
        let (names, text) = (text.names, text)
        return answer.rebuilt(
            for: CalendarAnswer.Parties(
                attendee: names.relayAddress, organizer: names.recipients.first,
                correspondent: names.correspondent,
                isReverse: names.isReverse, neutral: { text.rewrite($0, place: .whole) ?? $0 }))
    }
}
