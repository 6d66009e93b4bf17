// The places in a mail in which a team can write a guess.

/// A place of a guess in a mail of the team's.
package enum Place: String, CaseIterable, Sendable {
    // Header fields.
    case subject, subjectWords, subjectLong, messageID, references, inReplyTo, fromName, fromWords,
        fromLocal, replyTo
    case replyToLocal, replyToName, toName, cc, ccName, ccLocal, sender, comments, keywords,
        organization, listID, listPost,
        envelopeSender
    case otherField, received, receiptTo, threadTopic, dateComment
    // Ways to unsubscribe.
    case unsubscribeAddress, unsubscribeSubject, unsubscribeBody, unsubscribeLink
    // Text, plain and as markup.
    case text, beginning, end, alone, signature, longLine, imitatedAttribution, imitatedBlock,
        imitatedSignature, history, twice
    case many, linkText, linkSubject, linkBody, table
    // Markup only.
    case markup, attribute, target, markupComment, style, script, hidden, title, meta, preformatted,
        conditional, dataURL
    // Parts.
    case fileName, partName, partDescription, contentID, contentLocation, boundary, textFile,
        attachedMessage, attachedSubject
    case picture, preamble, epilogue
    // Properties of an invitation.
    case organizerName, attendeeName, attendee, calendarX, calendarComment, summary, description,
        location, uid, calendarURL
    case alternateText, contact, timeZone, alarm, categories, markupDescription, languageParameter

    package enum Group: Sendable { case header, unsubscribe, text, markup, part, calendar }

    package var group: Group {
        switch self {
        case .subject, .subjectWords, .subjectLong, .messageID, .references, .inReplyTo, .fromName,
            .fromWords, .fromLocal,
            .replyTo, .replyToLocal, .replyToName, .toName, .cc, .ccName, .ccLocal, .sender,
            .comments, .keywords, .organization,
            .listID, .listPost,
            .envelopeSender, .otherField, .received, .receiptTo, .threadTopic, .dateComment:
            .header
        case .unsubscribeAddress, .unsubscribeSubject, .unsubscribeBody, .unsubscribeLink:
            .unsubscribe
        case .text, .beginning, .end, .alone, .signature, .longLine, .imitatedAttribution,
            .imitatedBlock, .imitatedSignature,
            .history, .twice, .many, .linkText, .linkSubject, .linkBody, .table:
            .text
        case .markup, .attribute, .target, .markupComment, .style, .script, .hidden, .title, .meta,
            .preformatted, .conditional,
            .dataURL:
            .markup
        case .fileName, .partName, .partDescription, .contentID, .contentLocation, .boundary,
            .textFile, .attachedMessage,
            .attachedSubject, .picture, .preamble, .epilogue:
            .part
        default: .calendar
        }
    }

    /// Whether this spelling can be written here.
    package func takes(_ spelling: Spelling) -> Bool {
        switch self {
        case .cc, .replyTo, .attendee, .unsubscribeAddress, .receiptTo, .listPost:
            return spelling.isAddress
        case .fromLocal, .replyToLocal, .ccLocal, .envelopeSender:
            return [.verp, .local, .gateway, .hexadecimal, .localTagged, .printable, .dashHex]
                .contains(spelling)
        case .messageID, .references, .inReplyTo, .contentID, .listID, .uid:
            return spelling.isWord && spelling != .printable
        case .boundary:
            return spelling.isWord && ![.percent, .percentDots, .starHex].contains(spelling)
                && !spelling.isAddress
                && ![.glued, .gluedBehind, .underscored, .hyphened].contains(spelling)
        case .fromName, .fromWords, .toName, .ccName, .replyToName, .organizerName, .attendeeName,
            .alternateText, .fileName,
            .partName, .languageParameter, .timeZone, .contentLocation, .unsubscribeSubject,
            .unsubscribeBody, .linkSubject,
            .linkBody, .attribute, .meta, .style, .dataURL, .target:
            return spelling.isWord
                || [.atWord, .atBrackets, .dotWords, .spaced, .base64].contains(spelling)
        case .subjectWords: return !spelling.isMarkup
        case .markup: return true
        default:
            return !spelling.isMarkup
                && (group != .header || ![.fullWidth, .zeroWidth, .softHyphen].contains(spelling))
        }
    }
}

/// A guess in its place.
package struct Plant: Sendable, CustomStringConvertible {
    package let place: Place
    /// Of `Guess.all`.
    package let guess: Int
    package let spelling: Spelling
    /// Chooses among the sentences of the place.
    package let variant: UInt64

    package init(_ place: Place, guess: Int = 0, spelling: Spelling = .plain, variant: UInt64 = 0) {
        self.place = place
        self.guess = guess
        self.spelling = spelling
        self.variant = variant
    }

    package func text(_ side: Side) -> String { Guess.all[guess].spelled(spelling, side) }

    package var isTelling: Bool { !text(.right).utf8.elementsEqual(text(.wrong).utf8) }

    package var description: String {
        "\(place): \(Guess.all[guess].name), \(spelling), \(variant)"
    }
}
