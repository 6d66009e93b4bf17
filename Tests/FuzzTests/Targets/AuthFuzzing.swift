// DKIM tag lists and key records, SPF and DMARC records, DNS messages.

import InternetMessage

@testable import MailAuth

#if canImport(DNSWire)
import DNSWire
#else
import DNSClient
#endif

enum AuthFuzzing {
    static let dkim: FuzzTarget = { input in
        if let tags = try? DKIMTagList(input[...]) { _ = try? DKIMSignature(tags) }
        _ = try? DKIMKeyRecord(input)
        _ = DMARCRecord(parsing: input)
    }

    static let spf: FuzzTarget = { input in
        guard SPFRecord.isSPF(input) else {
            _ = try? SPFRecord(parsing: Array("v=spf1 ".utf8) + input)
            return
        }
        _ = try? SPFRecord(parsing: input)
    }

    static let dns: FuzzTarget = { input in
        for type in [DNSRecordType.a, .txt, .mx] {
            input.withUnsafeBufferPointer { _ = DNSMessage.reply($0, to: "name.example", type) }
        }
    }
}
