// The record of processing: complete, and the table in docs/PROCESSING.md. POSTERN_TEST_RECORD=1
// writes it.

import Accounts
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct ProcessingRecordTests {
    /// New data about users needs a purpose.
    @Test func record_everySectionOfTheDownload_isInOneActivity() throws {
        let test = try TestStore(.sqlite)
        try test.user("anna")
        let sections = try test.store.persons.records(user: "anna", now: TestStore.now).map(\.name)
        try #require(sections.count > 30)
        let recorded = ProcessingActivity.all.flatMap(\.sections)
        #expect(Set(sections).symmetricDifference(recorded) == [])
        #expect(Set(recorded).count == recorded.count)
    }

    @Test func record_everyKindOfDataAboutUsers_isInOneActivity() {
        let recorded = ProcessingActivity.all.flatMap(\.periods).compactMap { period in
            if case .retention(let data) = period { data } else { nil as DataClass? }
        }
        #expect(
            Set(recorded) == Set(DataClass.all.filter { $0.scopes.contains(.user) })
                && recorded.count == Set(recorded).count)
    }

    @Test func record_ofTheInstallation_namesItsDays() throws {
        let test = try TestStore(.sqlite)
        _ = try test.store.retention.set("checks", days: 123, TestStore.change)
        let retentions = try test.store.retention.all()
        let rows = ProcessingActivity.all.map { $0.columns(retentions) }
        #expect(rows.contains { $0[2] == "123 days (checks)" })
        #expect(rows.allSatisfy { $0.count == ProcessingActivity.header.count })
    }

    @Test func record_inTheDocuments_isTheDeclared() throws {
        let retentions = DataClass.all.map { Retention(dataClass: $0, days: $0.standardDays) }
        let rows = ProcessingActivity.all.map { activity in
            "| \(activity.columns(retentions).joined(separator: " | ")) |\n"
        }
        let table = "| data | purpose | kept | recipients |\n|---|---|---|---|\n" + rows.joined()
        #expect(
            try DocumentSection("record", by: "ProcessingRecordTests", in: "PROCESSING.md").holds(
                table), "docs/PROCESSING.md is not as declared: see POSTERN_TEST_RECORD above")
    }
}
