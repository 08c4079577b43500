/** Names of Secrets, several of them. Only their names are read. */
import { Select } from 'antd'
import { useNamespace } from '../frame/project'
import { KINDS, useList } from '../kube'
import { read, write } from './value'
import type { WidgetProps } from './widgets'

export function SecretsWidget({ id, path, object, onChange, describedBy }: WidgetProps) {
  const secrets = useList(KINDS.Secret, { namespace: useNamespace() })
  return (
    <Select
      id={id}
      aria-describedby={describedBy}
      mode="tags"
      value={(read(object, path) ?? []) as string[]}
      onChange={(names: string[]) => onChange(write(object, path, names))}
      options={secrets.items.map((each) => ({ value: each.metadata.name }))}
    />
  )
}
