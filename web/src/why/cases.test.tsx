/** The cases that tests/e2e/test_diagnosis.py tries on a real server: what is found there, in the list and on the page. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import text from '../../../tests/e2e/diagnosis.yaml?raw'
import type { Condition, KubeObject } from '../kube'
import { LANGUAGES, open, server, writeYaml, type Language } from '../testing/page'
import { refusal } from '../testing/server'
import type { Cause } from './table'

type Said = Record<Language, string>

interface Case extends Said {
  name: string
  object: KubeObject
  phase?: string
  /** of the list, where it says it otherwise */
  list?: string
  why: Cause[]
  condition: Condition & { causes?: Cause[] }
}

interface Refused extends Said {
  name: string
  object: KubeObject
  message: string
}

const { cases, refused } = parse(text, { merge: true }) as { cases: Case[]; refused: Refused[] }

/** As the server has it, in the project that the pages show. */
const found = ({ object, phase, condition, why }: Case): KubeObject => ({
  ...object,
  metadata: { name: object.metadata.name },
  status: { ...(phase ? { phase } : {}), conditions: [{ causes: why, message: 'in English', ...condition }] },
})

const pageOf = ({ kind }: KubeObject): [list: string, detail: string] => (kind === 'TensorBoard' ? ['tensorboards', 'tensorboards'] : ['jobs', `jobs/${kind!.toLowerCase()}s`])

describe.each(LANGUAGES)('what once was said wrongly (%s)', (language) => {
  it.each(cases)('in the list: $name', async (each) => {
    server.put(found(each))
    open(`/build/default/${pageOf(each.object)[0]}`, language)
    const row = (await screen.findByRole('link', { name: each.object.metadata.name })).closest<HTMLElement>('[role=row]')!
    await waitFor(() => expect(row.textContent).toContain(each.list ?? each[language]))
  })

  it.each(cases)('on the page: $name', async (each) => {
    server.put(found(each))
    server.on('POST', /explain$/, () => ({ causes: each.why }))
    open(`/build/default/${pageOf(each.object)[1]}/${each.object.metadata.name}`, language)
    await waitFor(() => expect(screen.getAllByRole('status').map((status) => status.textContent).join('\n')).toContain(each[language]))
  })

  it.each(refused)('when it is created: $name', async ({ object, message, ...said }) => {
    const [field, ...rest] = message.split(': ')
    const causes = [{ reason: 'FieldValueInvalid', field: field!, message: rest.join(': ') }]
    server.on('POST', /pytorchjobs$/, () => refusal(422, `PyTorchJob.kubeflow.org "${object.metadata.name}" is invalid: ${message}`, { reason: 'Invalid', details: { causes } }))
    const user = open('/build/default/overview', language)
    const title = language === 'en' ? 'Create from YAML' : '从 YAML 创建'
    await user.click(await screen.findByRole('button', { name: title }))
    const dialog = await screen.findByRole('dialog', { name: title })
    await writeYaml(JSON.stringify(object))
    const create = within(dialog).getByRole('button', { name: language === 'en' ? 'Create' : '创建' })
    await waitFor(() => expect(create.hasAttribute('disabled')).toBe(false))
    await user.click(create)
    await waitFor(() => expect(within(dialog).getByRole('alert').textContent).toContain(said[language]))
  })
})
