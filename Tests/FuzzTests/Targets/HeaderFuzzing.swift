// Header sections, MIME trees and address lists: parsing keeps the octets, and ranges lie within
// the input.

import InternetMessage

enum HeaderFuzzing {
    static let header: FuzzTarget = { input in
        let message = Message.parse(input)
        for field in message.header.fields {
            _ = field.unfoldedValue
            _ = EncodedWord.occurs(in: field.rawValue[...])
        }
        // A written header section is read again with the same fields.
        let again = Message.parse(message.header.serialized + [0x0D, 0x0A])
        require(
            again.header.fields.count == message.header.fields.count,
            "a header section that is written reads back with as many fields")
        _ = AuthorAddress.parse(header: message.header)
    }

    static let mime: FuzzTarget = { input in
        let message = Message.parse(input)
        let root = MIMEPart.parse(message)
        for part in root.flattened {
            require(
                part.bodyRange.lowerBound >= 0
                    && part.bodyRange.upperBound <= message.body.endIndex,
                "a part lies within the body")
            _ = part.transferEncoding.decode(message.body[part.bodyRange])
        }
    }

    static let addresses: FuzzTarget = { input in
        let list = AddressList.parse(input)
        for mailbox in list.mailboxes where list.isLegal {
            let again = AddressList.parse(mailbox.serialized)
            require(
                again.mailboxes.first?.addrSpec == mailbox.addrSpec,
                "a mailbox that is written reads back")
        }
        _ = AuthorAddress.parse(value: input[...])
        _ = AddressCandidates.find(in: input[...])
    }
}
