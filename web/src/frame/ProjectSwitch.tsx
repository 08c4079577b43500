import { ProjectOutlined } from '@ant-design/icons'
import { Button, Input, List, Tag } from 'antd'
import { useState } from 'react'
import { useWords } from '../i18n'
import { DropPanel } from '../ui/popup/DropPanel'
import { useProjects } from './project'
import { words } from './words'

interface Props {
  namespace: string
  onChoose: (name: string) => void
  onManage: () => void
}

export function ProjectSwitch({ namespace, onChoose, onManage }: Props) {
  const w = useWords(words)
  return (
    <DropPanel
      label={w('switchProject')}
      placement="bottomRight"
      content={(close) => (
        <Choices
          current={namespace}
          onChoose={(name) => {
            close()
            onChoose(name)
          }}
          onManage={() => {
            close()
            onManage()
          }}
        />
      )}
    >
      <Button icon={<ProjectOutlined />} aria-label={`${w('switchProject')}: ${namespace}`}>
        {namespace}
      </Button>
    </DropPanel>
  )
}

function Choices({ current, onChoose, onManage }: { current: string; onChoose: (name: string) => void; onManage: () => void }) {
  const w = useWords(words)
  const { choices, forbidden, loading } = useProjects()
  const [text, setText] = useState('')
  const shown = choices.filter((choice) => choice.name.includes(text))
  if (forbidden) {
    return (
      <div style={{ width: 280 }}>
        <p>{w('noProjects')}</p>
        <Input.Search aria-label={w('typeNamespace')} enterButton={w('go')} onSearch={(name) => name.trim() && onChoose(name.trim())} />
      </div>
    )
  }
  return (
    <div style={{ width: 280 }}>
      <Input
        autoFocus
        allowClear
        aria-label={w('findProject')}
        placeholder={w('findProject')}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onPressEnter={() => shown[0] && onChoose(shown[0].name)}
      />
      <List
        size="small"
        loading={loading}
        style={{ maxHeight: 320, overflow: 'auto', margin: '8px 0' }}
        dataSource={shown}
        renderItem={(choice) => (
          <List.Item style={{ padding: 0 }}>
            <Button type={choice.name === current ? 'link' : 'text'} block style={{ textAlign: 'start' }} onClick={() => onChoose(choice.name)}>
              <span className="grow">{choice.name}</span>
              {choice.project && <Tag>{w('project')}</Tag>}
            </Button>
          </List.Item>
        )}
      />
      <Button type="link" size="small" onClick={onManage}>
        {w('manageProjects')}
      </Button>
    </div>
  )
}
